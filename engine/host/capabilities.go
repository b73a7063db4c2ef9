package host

import (
	"github.com/berth-runtime/berth/internal/caps"
	"golang.org/x/sys/unix"
)

// Lacking are the capabilities that this process does not have. It can give them to
// no process (capset(2)), except in a user namespace below its own, where it has them all.
func Lacking() caps.Set {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return 0 // the kernel will tell
	}
	return ^(caps.Set(data[0].Permitted) | caps.Set(data[1].Permitted)<<32)
}
