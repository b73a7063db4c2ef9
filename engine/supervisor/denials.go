package supervisor

import (
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"sync"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/engine/container"
	"github.com/berth-runtime/berth/internal/proc/procs"
	"github.com/berth-runtime/berth/seccomp"
)

// Denials answers the calls that a profile refuses, as the profile says, and names each kind once.
// See docs/decisions/denials.md.
type Denials struct {
	// Default says that the profile is Berth's default one, made with these Capabilities: then it
	// can be told which other one would allow a call.
	Default      bool
	Capabilities []string
	// Record is given the calls that the profile allows, where they are asked about too; or nil.
	Record *Record
	// Keep is given each kind as it comes, if it is not nil.
	Keep func(*container.Denial)

	rules  *seccomp.Rules
	filter *seccomp.Filter
	at     string
	mu     sync.Mutex
	kinds  []*Denial
	grants []grant
	err    error
	ended  chan struct{}
}

// A Denial is a kind of refused calls.
type Denial struct {
	container.Denial
	With  string // the capability with which it would be allowed, ""
	Count int
}

// most is how many kinds are kept. A program that tries everything is not to fill our memory.
const most = 1000

// NewDenials is for one Serve.
func NewDenials() *Denials { return &Denials{ended: make(chan struct{})} }

// Serve answers until no process is left. The filter is the profile's, before it was watched; at is
// the profile's JSON pointer. Never is a call let through here that the filter refuses, whatever
// goes wrong: what it doesn't refuse by an errno has no business here, unless it is recorded.
func (d *Denials) Serve(profile *specs.LinuxSeccomp, filter *seccomp.Filter, at string, l *seccomp.Listener) {
	d.filter, d.at = filter, at
	d.rules, _ = seccomp.RulesOf(profile) // it was compiled, so it can be read
	defer close(d.ended)
	for {
		c, err := l.Receive()
		if err == nil {
			err = d.answer(c)
		}
		if err != nil && !errors.Is(err, seccomp.ErrGone) {
			if err != io.EOF && !errors.Is(err, os.ErrClosed) {
				d.mu.Lock()
				d.err = err
				d.mu.Unlock()
				l.Close()
			}
			return
		}
	}
}

func (d *Denials) answer(c *seccomp.Call) error {
	action, errno := d.filter.Verdict(c)
	switch {
	case d.Record != nil && (action == specs.ActAllow || action == specs.ActLog):
		d.Record.note(c)
		return c.Continue()
	case action != specs.ActErrno:
		return c.Fail(unix.ENOSYS)
	}
	d.note(c, unix.Errno(errno))
	if errno == 0 {
		return c.Return(0)
	}
	return c.Fail(unix.Errno(errno))
}

// note is made while the call waits, or its process might be gone.
func (d *Denials) note(c *seccomp.Call, errno unix.Errno) {
	if d.rules == nil {
		return
	}
	rule, _ := d.rules.Decide(c)
	n := &Denial{Denial: container.Denial{Call: describe(c), Errno: Errno(errno), Rule: d.at + rule}, Count: 1}
	d.mu.Lock()
	defer d.mu.Unlock()
	known := slices.IndexFunc(d.kinds, func(k *Denial) bool { return k.Call == n.Call && k.Rule == n.Rule })
	switch {
	case known >= 0:
		n = d.kinds[known]
		n.Count++
		if n.Program != "" {
			return
		}
	case len(d.kinds) == most:
		return
	default:
		if d.Default {
			n.With = d.capabilityFor(c)
		}
		d.kinds = append(d.kinds, n)
	}
	s, err := procs.ReadStat(c.Thread)
	if err != nil || !c.Waits() {
		// The name may be another process's. A signal has interrupted the call, which is then
		// made again, or ended its process.
		return
	}
	n.Program, n.Pid = s.Name, c.Thread
	if d.Keep != nil {
		d.Keep(&n.Denial)
	}
}

// A grant is the filter of Berth's default profile with one more capability.
type grant struct {
	capability string
	filter     *seccomp.Filter
}

// capabilityFor is what Berth's default profile allows the call with. The filters are compiled for
// the first kind, and serve all.
func (d *Denials) capabilityFor(c *seccomp.Call) string {
	if d.grants == nil {
		for _, name := range seccomp.DefaultCapabilities() {
			if f, err := seccomp.Compile(seccomp.Default(append([]string{name}, d.Capabilities...)...)); err == nil {
				d.grants = append(d.grants, grant{name, f})
			}
		}
	}
	for _, g := range d.grants {
		if action, _ := g.filter.Verdict(c); action == specs.ActAllow {
			return g.capability
		}
	}
	return ""
}

// All are the kinds so far.
func (d *Denials) All() []*Denial {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []*Denial
	for _, k := range d.kinds {
		one := *k
		list = append(list, &one)
	}
	return list
}

// Ended is closed when no process is left, or nothing can be answered any more.
func (d *Denials) Ended() <-chan struct{} { return d.ended }

// Err is what ended the answering too early: refused calls get ENOSYS from then on.
func (d *Denials) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// String is one line, as unshare(CLONE_NEWUSER) by bash[12]: EPERM, seccomp rule /syscalls/7.
func (n *Denial) String() string {
	s := n.Denial.String()
	if n.With != "" {
		s += " (allowed with " + n.With + ")"
	}
	return s
}

// Errno is the name of an errno.
func Errno(errno unix.Errno) string {
	if name := unix.ErrnoName(errno); name != "" {
		return name
	}
	return "errno " + strconv.Itoa(int(errno))
}
