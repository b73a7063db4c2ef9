package container

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/berth-runtime/berth/engine/launch"
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/internal/json"
	"github.com/berth-runtime/berth/internal/sys"
	"github.com/berth-runtime/berth/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Refusals answer the calls that a seccomp filter refuses by an errno, as the filter does (see
// seccomp.Filter.Watched). They own the listener, and are asked before the program is executed.
// What they have kept is in the container's Denials.
type Refusals func(profile *specs.LinuxSeccomp, filter *seccomp.Filter, listener int, keep func(*Denial)) error

// watch has the process's filter ask about what it refuses, if there is what answers. Where that
// can't be, the calls are refused as ever, and not named. What is to be recorded and can't be is an
// error.
func (r *Runtime) watch(container *plan.Plan, p *plan.Process, io *IO) error {
	learn := io.Learn
	if io.Refusals == nil {
		if !r.supervises(container) {
			return nil
		}
		learn = container.Learn
	}
	if p.Seccomp == nil && !learn {
		return nil
	}
	if io.Refusals == nil && learn {
		// Before there is anything to undo.
		dir, err := openLearned(r.LearnIn)
		if err != nil {
			return err
		}
		unix.Close(dir)
	}
	pass, err := sys.Random()
	if err != nil {
		return err
	}
	if p.Seccomp != nil {
		own := *p.Seccomp // that of an added process is the container's
		p.Seccomp = &own
	}
	if !learn {
		if err := p.Seccomp.Watch(pass); err != nil {
			r.warn("what the seccomp filter refuses can't be named: %v", err)
		}
		return nil
	}
	if p.Seccomp == nil {
		if p.Seccomp, err = plan.Unconfined(); err != nil {
			return err
		}
	}
	killable := sys.SeccompFlagsKnown(seccomp.FlagWaitKillableRecv | seccomp.FlagNewListener)
	if err := p.Seccomp.Learn(pass, killable); err != nil {
		return fmt.Errorf("config.json: /linux/seccomp: the system calls can't be recorded: %w", err)
	}
	return nil
}

// deliverListenerOf is deliverListener when the process has its last pid, which is after the filter
// is loaded where it comes into the pid namespace filtered.
func (c *Container) deliverListenerOf(child *launch.Child, s *plan.Seccomp, fd int, refusals Refusals) error {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("fcntl F_DUPFD_CLOEXEC", err)
	}
	listener := os.NewFile(uintptr(own), "seccomp listener")
	return child.OnceForked(func() error {
		defer listener.Close()
		return c.deliverListener(s, child.Pid, own, refusals)
	})
}

// deliverListener sends the descriptor of the seccomp listener, with the
// container process state, to the agent's socket: one connection for it alone
// (config-linux.md, "The Container Process State").
//
// That of a filter that is only watched goes to our caller.
func (c *Container) deliverListener(s *plan.Seccomp, pid, fd int, refusals Refusals) error {
	if s == nil || !s.Filter.Notify {
		return errors.New("the container's init sent a seccomp listener, and its filter has none")
	}
	// The agent takes it for one, and acts on what it reads there.
	if what, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd)); err != nil || what != "anon_inode:seccomp notify" {
		return fmt.Errorf("the container's init sent %q for a seccomp listener", what)
	}
	if s.Refuses != nil && refusals == nil {
		return c.supervise(s, fd)
	}
	if s.Refuses != nil {
		keep, err := c.keepDenials()
		if err != nil {
			return fmt.Errorf("keep what the seccomp filter refuses: %w", err)
		}
		own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return os.NewSyscallError("fcntl F_DUPFD_CLOEXEC", err)
		}
		if err := refusals(s.Profile, s.Refuses, own, keep); err != nil {
			unix.Close(own)
			return err
		}
		return nil
	}
	if s.ListenerPath == "" {
		return errors.New("config.json: /linux/seccomp/listenerPath: the profile uses SCMP_ACT_NOTIFY, but names no listener to notify")
	}
	state := State{Record: c.Record, Status: specs.StateCreating}
	state.Pid = pid
	w := json.NewWriter(nil, "")
	w.Object()
	w.Key("ociVersion").String(c.OCIVersion)
	w.Key("fds").Strings([]string{specs.SeccompFdName})
	w.Key("pid").Int(int64(pid))
	if s.ListenerMetadata != "" {
		w.Key("metadata").String(s.ListenerMetadata)
	}
	w.Key("state").Raw(string(state.OCI()))
	w.End()
	if err := sendDescriptor(s.ListenerPath, string(w.Bytes()), fd); err != nil {
		return fmt.Errorf("config.json: /linux/seccomp/listenerPath: %w", err)
	}
	return nil
}
