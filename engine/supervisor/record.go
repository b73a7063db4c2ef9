package supervisor

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
	"sync"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/internal/sys"
	"github.com/berth-runtime/berth/seccomp"
)

// A Record is which calls were made, and with which arguments where those matter.
type Record struct {
	// Arguments asks for those.
	Arguments bool
	// Grown is called when there is a call that there was not before, while it waits; or nil.
	Grown func()

	mu    sync.Mutex
	archs []specs.Arch
	calls map[key]*use
	err   error
	ended chan struct{}
}

type key struct {
	arch   specs.Arch
	number uint32
}

// A use is what is known of one call.
type use struct {
	name   string
	kind   *argument // nil: any arguments
	values []uint64  // those that were seen, or the union of the flags in one
	whole  bool      // more than could be told apart
}

// An argument is what decides how dangerous a call is.
type argument struct {
	index uint
	// flags are bits of which those not seen are kept out; 0 for one value among few.
	flags uint64
	// memory says that the flags are the first word of what the argument points to, where a
	// filter can't see them.
	memory bool
}

// namespaces are the flags by which clone(2) and unshare(2) make namespaces. The other ones share
// more or less with the caller, which is no danger.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
	unix.CLONE_NEWPID | unix.CLONE_NEWNET

// few is how many values of an argument a profile lists. What takes more is a general tool.
const few = 16

func argumentOf(name string) *argument {
	switch name {
	case "clone":
		a := &argument{flags: namespaces}
		if seccomp.NativeArch() == specs.ArchS390X {
			a.index = 1 // clone(2): s390 and cris have the stack first
		}
		return a
	case "clone3":
		return &argument{flags: namespaces | unix.CLONE_NEWTIME, memory: true}
	case "unshare":
		return &argument{flags: 1<<32 - 1}
	case "socket", "socketpair", "prctl", "personality", "arch_prctl", "ptrace", "bpf", "keyctl", "seccomp":
		return &argument{}
	case "ioctl", "setns":
		return &argument{index: 1}
	}
	return nil
}

// NewRecord is empty.
func NewRecord(arguments bool) *Record {
	return &Record{Arguments: arguments, calls: map[key]*use{}, ended: make(chan struct{})}
}

// Filter notifies of every call, of all architectures, but those of plan.Unasked.
func Filter() (*seccomp.Filter, error) {
	all, err := plan.Unconfined()
	if err != nil {
		return nil, err
	}
	return plan.Learning(all.Profile, sys.SeccompFlagsKnown(seccomp.FlagWaitKillableRecv|seccomp.FlagNewListener))
}

// Serve lets all calls through and notes them, until there is none to come.
func (r *Record) Serve(l *seccomp.Listener) {
	defer close(r.ended)
	for {
		c, err := l.Receive()
		if err == nil {
			r.note(c)
			err = c.Continue()
		}
		if err != nil && !errors.Is(err, seccomp.ErrGone) {
			if err != io.EOF && !errors.Is(err, os.ErrClosed) {
				r.mu.Lock()
				r.err = err
				r.mu.Unlock()
			}
			return
		}
	}
}

// Ended is closed when no process is left.
func (r *Record) Ended() <-chan struct{} { return r.ended }

func (r *Record) note(c *seccomp.Call) {
	if r.add(c) && r.Grown != nil {
		r.Grown()
	}
}

func (r *Record) add(c *seccomp.Call) (grown bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := key{c.Arch, c.Number}
	u := r.calls[k]
	if u == nil {
		grown = true
		u = &use{name: c.Name()}
		if r.Arguments {
			u.kind = argumentOf(u.name)
		}
		r.calls[k] = u
		if !slices.Contains(r.archs, c.Arch) {
			r.archs = append(r.archs, c.Arch)
		}
	}
	if u.kind != nil && !u.whole {
		u.add(c)
	}
	return grown
}

// add notes the argument. The kernel takes 32 bits of each of these.
func (u *use) add(c *seccomp.Call) {
	value := c.Args[u.kind.index]
	if u.kind.memory {
		var word [8]byte
		if _, err := c.ReadMemory(word[:], value); err != nil {
			u.whole = true // what can't be told is not kept out
			return
		}
		value = binary.NativeEndian.Uint64(word[:])
	}
	value &= 1<<32 - 1
	switch {
	case u.kind.flags != 0:
		if len(u.values) == 0 {
			u.values = []uint64{0}
		}
		u.values[0] |= value & u.kind.flags
	case !slices.Contains(u.values, value):
		if len(u.values) == few {
			u.whole = true
			return
		}
		u.values = append(u.values, value)
	}
}

// Calls is how many different calls were made, by name.
func (r *Record) Calls() int { return len(r.names()) }

func (r *Record) names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, u := range r.calls {
		if u.name != "" && !slices.Contains(names, u.name) {
			names = append(names, u.name)
		}
	}
	slices.Sort(names)
	return names
}

// Err is what ended the recording too early, nil if nothing did.
func (r *Record) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}
