package trace

import (
	"slices"
	"syscall"
	"time"
)

// A Trace is what is known of one command.
type Trace struct {
	title string
	began time.Time
	took  time.Duration // set by End
	// phases are in the order of their begin; each has its depth.
	phases []phase
	open   []int // indices of the phases that have not ended, outermost first
	calls  []Call
	// Tell, if not nil, is called when a phase begins and when it ends, and for each call of the
	// init that failed and was tolerated.
	Tell func(line string)
	// told is set where that is all: nothing is kept, or written.
	told bool
}

type phase struct {
	name        string
	depth       int
	start, took time.Duration
}

// A Call is a system call that the container's init has made.
type Call struct {
	Name    string // of the system call
	Text    string // what it was made for
	Pointer string // the entry of the configuration that wanted it, or ""
	Start   time.Time
	Took    time.Duration
	// Tolerated is what the call failed with, where the init goes on regardless, or 0.
	Tolerated syscall.Errno
}

// New begins a Trace. The title is the command line.
func New(title string) *Trace { return &Trace{title: title, began: time.Now()} }

// Telling begins a Trace that is only told as it goes: its phases, and calls that fail.
func Telling(tell func(line string)) *Trace {
	return &Trace{began: time.Now(), Tell: tell, told: true}
}

// A Phase is one that has begun. The zero Phase is one of a Trace that is off.
type Phase struct {
	of    *Trace
	index int
}

// Begin begins a phase inside those that are open.
func (t *Trace) Begin(name string) Phase {
	if t == nil {
		return Phase{}
	}
	t.phases = append(t.phases, phase{name: name, depth: len(t.open), start: time.Since(t.began)})
	t.open = append(t.open, len(t.phases)-1)
	t.tell(name + " …")
	return Phase{t, len(t.phases) - 1}
}

// End ends the phase, and those inside of it that an error has left open.
func (p Phase) End() {
	if p.of == nil {
		return
	}
	at := slices.Index(p.of.open, p.index)
	if at < 0 {
		return // it ended with one around it
	}
	p.of.close(at)
}

// close ends the open phases from one on.
func (t *Trace) close(at int) {
	now := time.Since(t.began)
	for _, i := range t.open[at:] {
		t.phases[i].took = now - t.phases[i].start
		t.tell(t.phases[i].name + ": " + t.phases[i].took.Round(time.Microsecond).String())
	}
	t.open = t.open[:at]
}

// On reports whether there is a Trace to tell calls to.
func (t *Trace) On() bool { return t != nil }

func (t *Trace) tell(line string) {
	if t.Tell != nil {
		t.Tell(line)
	}
}

// Calls adds calls of the init.
func (t *Trace) Calls(calls []Call) {
	if t == nil {
		return
	}
	if !t.told {
		t.calls = append(t.calls, calls...)
	}
	for i := range calls {
		if calls[i].Tolerated != 0 {
			t.tell(calls[i].failure())
		}
	}
}

// failure says what a call that was tolerated failed with.
func (c *Call) failure() string {
	line := "tolerated: " + c.Text + ": " + c.Name + ": " + c.Tolerated.Error()
	if c.Pointer != "" {
		line += " (config.json: " + c.Pointer + ")"
	}
	return line
}

// end ends all that is open; from then on the Trace is what can be written.
func (t *Trace) end() {
	t.close(0)
	if t.took == 0 {
		t.took = time.Since(t.began)
	}
}

// since is the time of a call by the clock of the phases.
func (t *Trace) since(c *Call) time.Duration { return c.Start.Sub(t.began) }
