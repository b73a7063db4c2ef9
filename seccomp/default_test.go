package seccomp

import (
	"reflect"
	"slices"
	"testing"
)

// The list of what makes a difference is whole: each name in it does, and all that have calls of
// their own are in it.
func TestDefaultCapabilities(t *testing.T) {
	without := Default()
	for _, name := range DefaultCapabilities() {
		if reflect.DeepEqual(Default(name), without) {
			t.Errorf("%s makes no difference", name)
		}
	}
	for _, name := range []string{"CAP_CHOWN", "CAP_KILL", "CAP_NET_ADMIN", "CAP_SETUID", "CAP_CHECKPOINT_RESTORE", "CAP_SYS_RESOURCE",
		"CAP_SYS_CHROOT", "CAP_DAC_READ_SEARCH", "CAP_BPF", "CAP_PERFMON", "CAP_SYSLOG", "CAP_SYS_BOOT", "CAP_SYS_MODULE", "CAP_SYS_NICE",
		"CAP_SYS_PACCT", "CAP_SYS_PTRACE", "CAP_SYS_RAWIO", "CAP_SYS_TIME", "CAP_SYS_TTY_CONFIG", "CAP_SYS_ADMIN"} {
		if differs := !reflect.DeepEqual(Default(name), without); differs != slices.Contains(DefaultCapabilities(), name) {
			t.Errorf("%s: makes a difference: %v", name, differs)
		}
	}
}
