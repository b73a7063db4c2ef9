package program

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// A Talk is what a process that runs a Program may say, and reads it. Everything that
// comes over the socket is a stranger's: the process may be in the hands of another
// one of the container by then (ptrace(2)), or its socket may be. So a message is one
// that this very Program would send at this point, or it is an error:
//
//   - a request is one that was not made yet and comes after those that were, with its
//     very value, and with a descriptor where that belongs to it, and no more;
//   - a pid is in the range of pids (whose it is, the one who follows it has to ask);
//   - a failure is that of a call of the Program.
type Talk struct {
	left  []Expectation
	place int
	ops   []Op // nil where they are not known
}

// Talk is the talk with a process that is about to run the Program.
func (p *Program) Talk() *Talk { return &Talk{left: slices.Clone(p.asks), ops: p.Ops} }

// NewTalk is the talk with a process that may make these requests, in this order, of
// whose Program nothing else is known.
func NewTalk(requests ...Expectation) *Talk {
	t := &Talk{left: slices.Clone(requests)}
	for i := range t.left {
		t.left[i].place = i + 1
	}
	return t
}

// maxPid is the kernel's PID_MAX_LIMIT on 64-bit machines.
const maxPid = 1 << 22

// Hear reads a message that came with so many descriptors: a request, or a failure,
// which is the last thing that is said.
func (t *Talk) Hear(message []byte, descriptors int) (Request, *Failure, error) {
	if f, ok := ParseFailure(message); ok {
		if t.ops != nil && (f.Index >= len(t.ops) || t.ops[f.Index].Nr != f.Nr) || descriptors != 0 {
			return Request{}, nil, fmt.Errorf("the container's init reports the failure of a call that it does not make (number %d, system call %d)", f.Index, f.Nr)
		}
		t.left = nil
		return Request{}, &f, nil
	}
	r, ok := parseRequest(message)
	if !ok {
		return Request{}, nil, fmt.Errorf("the container's init sent %d bytes that mean nothing", len(message))
	}
	found := -1
	for i, e := range t.left {
		same := e.Request == r || e.Kind == r.Kind && r.Kind.namesProcess()
		if same && e.place >= t.place && (found < 0 || e.place < t.left[found].place) {
			found = i
		}
	}
	if found < 0 {
		return Request{}, nil, fmt.Errorf("the container's init asks for %d with the value %d, which its program does not do at this point", r.Kind, r.Value)
	}
	e := t.left[found]
	want := 0
	if e.FD {
		want = 1
	}
	switch {
	case descriptors != want:
		return Request{}, nil, fmt.Errorf("the container's init asks for %d with %d descriptors, where %d belong to that", r.Kind, descriptors, want)
	case r.Kind.namesProcess() && (r.Value == 0 || r.Value > maxPid):
		return Request{}, nil, fmt.Errorf("the container's init names process %d, which is not a pid", r.Value)
	}
	t.place = e.place
	t.left = slices.Delete(t.left, found, found+1)
	return r, nil, nil
}

func parseRequest(b []byte) (Request, bool) {
	le := binary.LittleEndian
	if len(b) != 16 || le.Uint32(b) != askMagic {
		return Request{}, false
	}
	return Request{Kind: Ask(le.Uint32(b[4:])), Value: le.Uint64(b[8:])}, true
}
