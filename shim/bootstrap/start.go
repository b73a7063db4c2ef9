package bootstrap

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/shim/internal/bundle"
	"github.com/berth-runtime/berth/shim/internal/bundle/options"
	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// groupingVariable sets the grouping of containers whose options do not.
const groupingVariable = "BERTH_SHIM_GROUPING"

// wholeNamespace is the group of all containers of a namespace. No container
// can have it for an id.
const wholeNamespace = "@namespace"

// Start makes the shim of a container, or finds the one of its group, and
// prints its address.
func Start(a *Args, in io.Reader, out io.Writer) error {
	if a.ID == "" || a.Namespace == "" {
		return errors.New("start needs -id and -namespace")
	}
	input, err := readStdin(in)
	if err != nil {
		return err
	}
	p, err := parseParams(input, a)
	if err != nil {
		return err
	}
	group, err := groupOf(a, p.options)
	if err != nil {
		return err
	}
	path, err := socketPath(p.socketDir, a, group)
	if err != nil {
		return err
	}
	if a.Debug = a.Debug || p.message.LogLevel < 0; a.Debug {
		if a.DebugSocket, err = socketPath(p.socketDir, a, filepath.Join(group, "debug")); err != nil {
			return err
		}
	}
	address := "unix://" + path
	// containerd 1.6 and 1.7 find the shim by this file when they restart, and
	// delete removes a dead shim's socket by it; so it is there before the shim.
	if err := bundle.Write(".", "address", []byte(address)); err != nil {
		return err
	}
	// A sandbox's options come here and with no call after it; and a delete may
	// come before any call.
	if *p.options != (options.Options{}) {
		if err := p.options.Save("."); err != nil {
			return fmt.Errorf("note the options in the bundle: %w", err)
		}
	}
	if err := listenOrJoin(a, p, path); err != nil {
		return err
	}
	answer := []byte(address)
	if p.modern {
		answer = wire.Marshal(&wire.BootstrapResult{Version: 3, Address: address, Protocol: "ttrpc"})
	}
	_, err = out.Write(answer)
	return err
}

func groupOf(a *Args, o *options.Options) (string, error) {
	grouping := o.Grouping
	if grouping == "" {
		grouping = os.Getenv(groupingVariable)
	}
	switch grouping {
	case options.PerContainer:
		return a.ID, nil
	case options.PerNamespace:
		return wholeNamespace, nil
	case options.PerPod, "":
	default:
		return "", fmt.Errorf("%s is %q: use %q, %q or %q", groupingVariable, grouping, options.PerContainer, options.PerPod, options.PerNamespace)
	}
	config, err := bundle.ReadConfig(".")
	switch {
	case errors.Is(err, os.ErrNotExist): // a sandbox without a spec
		return a.ID, nil
	case err != nil:
		return "", err
	case config.Group != "":
		return config.Group, nil
	}
	return a.ID, nil
}

// mostAttempts is how many shims of one group may leave under the eyes of one start.
const mostAttempts = 10

// listenOrJoin leaves a server at path that knows that the container is coming.
func listenOrJoin(a *Args, p *params, path string) error {
	for attempt := 1; ; attempt++ {
		listener, err := listen(path)
		if err == nil {
			defer listener.Close()
			if err = serve(a, p, listener); err != nil {
				unix.Unlink(path)
			}
			return err
		}
		if !errors.Is(err, unix.EADDRINUSE) {
			return err
		}
		there := socketAt(path)
		err = announce(path, a.ID)
		switch {
		case err == nil:
			return nil
		case attempt == mostAttempts, errors.Is(err, os.ErrDeadlineExceeded):
			return fmt.Errorf("shim at %s does not answer: %w", path, err)
		case errors.Is(err, unix.ECONNREFUSED), ttrpc.CodeOf(err) == ttrpc.Unavailable:
			if err := removeDead(path, there); err != nil {
				return err
			}
		}
	}
}

// debugAddress is the file in a bundle that delete finds a debug socket by.
const debugAddress = "debug-address"

// serve leaves a server behind for a socket that was just made.
func serve(a *Args, p *params, listener *os.File) error {
	if a.DebugSocket == "" {
		return fork(a, p, listener, nil)
	}
	if err := bundle.Write(".", debugAddress, []byte("unix://"+a.DebugSocket)); err != nil {
		return err
	}
	// Whose it was is dead: the socket of the same shim was free.
	if err := unix.Unlink(a.DebugSocket); err != nil && err != unix.ENOENT {
		return &os.PathError{Op: "unlink", Path: a.DebugSocket, Err: err}
	}
	debug, err := listen(a.DebugSocket)
	if err != nil {
		return err
	}
	defer debug.Close()
	if err = fork(a, p, listener, debug); err != nil {
		unix.Unlink(a.DebugSocket)
	}
	return err
}

// absolute is where the bundle of a command line is.
func (a *Args) absolute() (string, error) {
	if a.Bundle == "" {
		return os.Getwd()
	}
	return filepath.Abs(a.Bundle)
}
