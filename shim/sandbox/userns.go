package sandbox

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/namespace"
)

// userOwner opens the user namespace that a network namespace belongs to, or
// gives nil where that is this process's own.
//
// CRI makes the network of a pod with a user namespace in one that it does not
// name. The pod must be in that very one: sysfs shows a network, and the kernel
// lets only its owner mount it (sysfs in user_namespaces(7)).
func userOwner(netns string) (*os.File, error) {
	network, err := os.Open(netns)
	if err != nil {
		return nil, fmt.Errorf("network namespace of the sandbox: %w", err)
	}
	defer network.Close()
	fd, err := unix.IoctlRetInt(int(network.Fd()), unix.NS_GET_USERNS) // Linux 4.9
	if err != nil {
		return nil, fmt.Errorf("user namespace of network namespace %s: %w", netns, err)
	}
	owner := os.NewFile(uintptr(fd), "user")
	unix.CloseOnExec(fd)
	ours, err := namespace.Ours(fd, "user")
	if err != nil {
		owner.Close()
		return nil, fmt.Errorf("compare user namespaces: %w", err)
	}
	if ours {
		owner.Close()
		return nil, nil
	}
	return owner, nil
}
