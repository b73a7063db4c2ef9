package container

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/spec"
	"github.com/berth-runtime/berth/internal/start/entry"
	"github.com/berth-runtime/berth/internal/sys"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// SupervisorName is what the process that answers a container's listener is called by. Its first
// argument is the container's id.
const SupervisorName = "berth-seccomp-supervisor"

// The descriptors that it is given. Its standard input is a config.json with the profile, and it
// says on its standard output that it is ready, or why not.
const (
	SupervisorListener = 3 + iota
	SupervisorDenials  // the file that KeepDenials writes to
	SupervisorLearned  // the directory for profiles, if it is to record one
)

// SupervisorReady is what it says.
const SupervisorReady = "ready"

// supervises reports whether a process of ours answers the listeners of a container, and warns of
// an annotation that can't be followed.
func (r *Runtime) supervises(p *plan.Plan) bool {
	if p.Learn && r.LearnIn == "" {
		r.warn("config.json: %s: nothing is recorded: the host's settings name no directory for it (seccomp-learn-directory in /etc/berth/berth.toml)",
			spec.Join("/annotations", spec.LearnAnnotation))
		p.Learn = false
	}
	return r.Supervisor != "" && (p.Learn || p.NameDenials)
}

// supervise starts the process that answers the listener, until no process is left under the
// filter. It is a process of its own so that it outlives this command, or the shim's program. If
// it is killed, the kernel answers what it would have by ENOSYS.
func (c *Container) supervise(s *plan.Seccomp, listener int) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("start the supervisor of the seccomp filter: %w", err)
		}
	}()
	profile, err := sys.MemoryFD("profile", spec.Format(&specs.Spec{Version: c.OCIVersion, Linux: &specs.Linux{Seccomp: s.Profile}}, ""))
	if err != nil {
		return err
	}
	defer unix.Close(profile)
	denials, err := c.openDenials()
	if err != nil {
		return err
	}
	defer unix.Close(denials)
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: "/dev/null", Err: err}
	}
	defer unix.Close(null)
	said, say, err := os.Pipe()
	if err != nil {
		return err
	}
	defer said.Close()
	defer say.Close()
	files := []uintptr{uintptr(profile), say.Fd(), uintptr(null), uintptr(listener), uintptr(denials)}
	if s.Learns {
		learned, err := openLearned(c.runtime.LearnIn)
		if err != nil {
			return err
		}
		defer unix.Close(learned)
		files = append(files, uintptr(learned))
	}
	_, err = entry.ForkExec(c.runtime.Supervisor, []string{SupervisorName, c.ID}, &syscall.ProcAttr{
		Dir: "/", Env: []string{}, Files: files, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return &os.PathError{Op: "execute", Path: c.runtime.Supervisor, Err: err}
	}
	say.Close()
	text, err := io.ReadAll(said)
	switch {
	case err != nil:
		return err
	case string(text) == SupervisorReady:
		return nil
	case len(text) == 0:
		return errors.New("it has ended before it was ready")
	}
	return errors.New(strings.TrimSpace(string(text)))
}

// openLearned opens the directory for profiles. What is written there is to be trusted, and who
// may write there could have us replace any file by a link.
func openLearned(name string) (int, error) {
	dir, err := unix.Open(name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: name, Err: err}
	}
	var st unix.Stat_t
	if err = unix.Fstat(dir, &st); err == nil && (int(st.Uid) != os.Geteuid() || st.Mode&0o022 != 0) {
		err = errors.New("others can write to it: make it the runtime's own, mode 0700 or 0755")
	}
	if err != nil {
		unix.Close(dir)
		return -1, fmt.Errorf("the directory for seccomp profiles, %s: %w", name, err)
	}
	return dir, nil
}
