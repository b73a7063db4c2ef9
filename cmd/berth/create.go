package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/engine/container"
	"github.com/berth-runtime/berth/internal/start/openfiles"
	"golang.org/x/sys/unix"
)

// makeOptions are the options that create and run share.
type makeOptions struct {
	bundle        string
	pidFile       string
	consoleSocket string
	pidfdSocket   string
	preserveFDs   int
	noPivot       bool
	noNewKeyring  bool
}

func (o *makeOptions) define(f *cli.Flags) {
	f.String(&o.bundle, "bundle", "b", "DIR", "directory with config.json and the root file system (default: the current one)")
	f.String(&o.pidFile, "pid-file", "", "FILE", "write the pid of the container's first process to this file")
	f.String(&o.consoleSocket, "console-socket", "", "SOCKET", "send the terminal's pty master to this unix socket")
	f.String(&o.pidfdSocket, "pidfd-socket", "", "SOCKET", "send a pidfd of the first process to this unix socket")
	f.Int(&o.preserveFDs, "preserve-fds", "", "N", "pass N more file descriptors, from 3 (after those of LISTEN_FDS), to the process")
	f.Bool(&o.noPivot, "no-pivot", "", "do not use pivot_root, for a root file system on a ramfs")
	f.Bool(&o.noNewKeyring, "no-new-keyring", "", "keep the caller's session keyring")
}

func (p *program) createCommand() *cli.Command {
	var o makeOptions
	c := &cli.Command{
		Args: "ID", Least: 1, Most: 1,
		Summary: "Create a container without starting its program.",
		Run: func(args []string) error {
			r, err := p.runtime()
			if err != nil {
				return err
			}
			options, err := o.options()
			if err != nil {
				return err
			}
			created, err := r.Create(args[0], options)
			if err != nil {
				return err
			}
			created.Close()
			return nil
		},
	}
	o.define(&c.Flags)
	c.Flags.Absent = p.inBundle
	return c
}

// options resolves paths by the current directory and takes over the descriptors.
func (o *makeOptions) options() (*container.CreateOptions, error) {
	bundle, err := filepath.Abs(o.bundle)
	if err != nil {
		return nil, fmt.Errorf("--bundle: %w", err)
	}
	listen, err := activated()
	if err != nil {
		return nil, err
	}
	preserve, err := preserved(listen, o.preserveFDs)
	if err != nil {
		return nil, err
	}
	return &container.CreateOptions{
		Bundle:  bundle,
		PidFile: o.pidFile,
		IO: container.IO{
			Stdio: [3]uintptr{0, 1, 2}, Preserve: preserve, Listen: listen,
			ConsoleSocket: o.consoleSocket, PidfdSocket: o.pidfdSocket,
		},
		NoPivot: o.noPivot, NoNewKeyring: o.noNewKeyring,
		NotifySocket: os.Getenv("NOTIFY_SOCKET"),
	}, nil
}

// activated is how many descriptors came to this process by socket activation
// (sd_listen_fds(3)). The variables may be an ancestor's, and the numbers then be of
// descriptors that are no business of the container.
func activated() (int, error) {
	text := os.Getenv("LISTEN_FDS")
	if text == "" || os.Getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("LISTEN_FDS=%q in the environment is not a number of descriptors", text)
	}
	return n, nil
}

// preserved lists the descriptors from 3 on that go to the process: those of
// socket activation, then n that were asked for.
func preserved(listen, n int) (fds []uintptr, err error) {
	if n < 0 {
		return nil, fmt.Errorf("--preserve-fds %d: it can't be less than none", n)
	}
	// Those that we have opened ourselves lie behind the last that we were given.
	free, known := openfiles.Free()
	for fd := 3; fd-3-listen < n; fd++ { // n may be the largest int
		_, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if known && fd >= free {
			err = unix.EBADF
		}
		switch {
		case err != nil && fd < 3+listen:
			return nil, fmt.Errorf("LISTEN_FDS=%d in the environment: descriptor %d was not passed to berth: %w", listen, fd, err)
		case err != nil:
			return nil, fmt.Errorf("--preserve-fds %d: descriptor %d was not passed to berth: %w", n, fd, err)
		}
		fds = append(fds, uintptr(fd))
	}
	return fds, nil
}
