package supervisor

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"runtime/debug"
	"strconv"

	"golang.org/x/sys/unix"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/engine/container"
	"github.com/berth-runtime/berth/engine/spec"
	"github.com/berth-runtime/berth/internal/atomicfile"
	"github.com/berth-runtime/berth/internal/sys"
	"github.com/berth-runtime/berth/seccomp"
)

// commName is what ps shows: 15 bytes at most.
const commName = "berth-seccomp"

// Process is the main function of the process that answers a container's listener (see
// container.SupervisorName), by the descriptors that it was given. It returns the exit status once
// no process is left under the filter.
func Process(args []string) int {
	debug.SetGCPercent(100)
	sys.SetThreadName(commName) // it was executed as "exe"
	// Nothing else is ours, and whose end others wait for least of all.
	_ = unix.CloseRange(container.SupervisorLearned+1, math.MaxUint32, 0)
	serve, err := prepare(args)
	said := container.SupervisorReady
	if err != nil {
		said = err.Error()
	}
	if _, err := os.Stdout.WriteString(said); err != nil {
		return 1 // who started us is gone: the container will not come to be
	}
	// Standard error is the null device.
	if err := errors.Join(unix.Dup3(2, 1, 0), unix.Dup3(2, 0, 0)); err != nil || serve == nil {
		return 1
	}
	return serve()
}

func prepare(args []string) (serve func() int, err error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("%s is started by the runtime, for a container", container.SupervisorName)
	}
	config, err := io.ReadAll(os.Stdin)
	if err != nil {
		return nil, err
	}
	s, err := spec.Parse(config)
	if err != nil {
		return nil, err
	}
	if s.Linux == nil || s.Linux.Seccomp == nil {
		return nil, errors.New("there is no seccomp profile")
	}
	profile := s.Linux.Seccomp
	filter, err := seccomp.Compile(profile)
	if err != nil {
		return nil, err
	}
	d := NewDenials()
	d.Keep = container.KeepDenials(os.NewFile(container.SupervisorDenials, "denials"))
	var beneath []string
	if _, err := unix.FcntlInt(container.SupervisorLearned, unix.F_GETFD, 0); err == nil {
		l := &learned{dir: container.SupervisorLearned, name: args[0] + ".json", record: NewRecord(false)}
		l.record.Grown = l.grown
		d.Record = l.record
		if err := l.write(); err != nil { // with what there is, to find out that it can be
			return nil, err
		}
		beneath = append(beneath, "/proc/self/fd/"+strconv.Itoa(container.SupervisorLearned))
	}
	l, err := seccomp.Notify(container.SupervisorListener)
	if err != nil {
		return nil, err
	}
	// The container's processes have us called at will.
	if err := sys.Confine(0, beneath...); err != nil {
		return nil, err
	}
	return func() int {
		d.Serve(profile, filter, "/linux/seccomp", l)
		if d.Err() != nil {
			return 1
		}
		return 0
	}, nil
}

// learned is a file that a record goes to while it grows, so that it is whole whatever ends us. The
// added processes of a container have supervisors of their own.
type learned struct {
	dir    int
	name   string
	record *Record
}

// grown writes the file. A disk that is full is no reason to end the container: the next call that
// is new tries again.
func (l *learned) grown() { _ = l.write() }

func (l *learned) write() error {
	if err := unix.Flock(l.dir, unix.LOCK_EX); err != nil {
		return os.NewSyscallError("flock", err)
	}
	defer unix.Flock(l.dir, unix.LOCK_UN)
	base, err := l.read()
	if err != nil {
		return err
	}
	profile, err := l.record.Profile(base)
	if err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	return atomicfile.Write(l.dir, l.name, spec.FormatSeccomp(profile), 0o644)
}

func (l *learned) read() (*specs.LinuxSeccomp, error) {
	fd, err := unix.Openat(l.dir, l.name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: l.name, Err: err}
	}
	f := os.NewFile(uintptr(fd), l.name)
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	profile, err := spec.ParseSeccomp(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.name, err)
	}
	return profile, nil
}
