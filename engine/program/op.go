package program

import "golang.org/x/sys/unix"

// Set is the number of the op that makes no system call: its result is its
// first argument.
const Set = 0xffffffff

// A Note says why an op is there.
type Note struct {
	Pointer string // the config entry that caused it, as a JSON pointer
	Text    string // what is being done, in the words of an error message
}

// An Op is one system call of a Program, and what to do with its result.
type Op struct {
	Nr   uint32
	Note Note

	b      *Builder
	values [maxArgs]uint64 // the arguments, apart from their kinds: half the size
	kinds  [maxArgs]argKind
	out    Addr
	target Label
	errnos [maxErrnos]uint16
	nargs  uint8
	nerrs  uint8
	flags  uint8
	forget bool // ForgetDone's: only Build knows its arguments
}

// Into stores the result in a cell, if the call succeeds.
func (o *Op) Into(c Cell) *Op { return o.IntoAddr(c.addr) }

// IntoAddr stores the result as eight bytes at a place inside a structure.
func (o *Op) IntoAddr(a Addr) *Op {
	o.out = a
	if !o.b.holds(a, 8) {
		o.b.fail(o, "the result goes to a place outside the data")
	} else if r := o.b.regionAt(a); r.kind == regionString {
		o.b.fail(o, "the result would overwrite a string, which other calls may share")
	}
	return o
}

// Expect goes on at the label if the call fails with one of the errnos. An op
// has one label; more calls of Expect add errnos.
func (o *Op) Expect(target Label, errnos ...unix.Errno) *Op {
	o.goTo(target)
	for _, errno := range errnos {
		switch {
		case errno == 0 || errno > maxErrno:
			o.b.fail(o, "an expected errno is out of range")
		case o.nerrs == maxErrnos:
			o.b.fail(o, "more expected errnos than an op can hold")
		default:
			o.errnos[o.nerrs] = uint16(errno)
			o.nerrs++
		}
	}
	return o
}

// ExpectAny goes on at the label whatever the call fails with.
func (o *Op) ExpectAny(target Label) *Op {
	o.goTo(target)
	o.flags |= flagAnyErrno
	return o
}

// Retry makes the call again as long as it answers EAGAIN, on the fuel of a
// jump each time: openat2 does so when a rename or a mount elsewhere crosses
// the resolution of "..".
func (o *Op) Retry() *Op {
	o.flags |= flagRetry
	return o
}

// ZeroFails makes a result of 0 count as EPIPE. With Expect(label, EPIPE) a
// Program branches on it: a clone in the child, the end of a file.
func (o *Op) ZeroFails() *Op {
	o.flags |= flagZeroFails
	return o
}

// KeepErrno stores the errno, negated, in place of the result where the call
// fails and goes on at its label. A Set of that fails as the call did: so that what
// can still be found out about a failure is told before the failure is.
func (o *Op) KeepErrno() *Op {
	if o.out.off == 0 {
		o.b.fail(o, "an errno is to be stored, and there is no place for it")
	}
	o.flags |= flagKeepErrno
	return o
}

// Because replaces the op's note.
func (o *Op) Because(pointer, text string) *Op {
	o.Note = Note{pointer, text}
	return o
}

func (o *Op) arg(i int) Arg { return Arg{o.values[i], o.kinds[i]} }

func (o *Op) goTo(target Label) {
	if o.target != 0 && o.target != target {
		o.b.fail(o, "expected errnos lead to two labels")
	}
	o.target = target
}
