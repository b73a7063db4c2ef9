package program

import (
	"encoding/binary"
	"encoding/hex"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/internal/argname"
	"github.com/berth-runtime/berth/internal/escape"
	"golang.org/x/sys/unix"
)

// A Line is an op in words. Nothing in it depends on where the data is loaded.
type Line struct {
	Index     int
	Call      string   // name of the system call, or "set", or "jump"
	Args      []string // strings quoted, structures in braces, cells as $1
	Result    string   // the cell that gets the result, or ""
	Expected  []string // the expected errnos by name, "any" for all
	Target    int      // where it goes on after one of them, or -1
	ZeroFails bool
	Retry     bool // the call is made again after EAGAIN
	Note      Note
}

// String is the whole Program, one line an op.
func (p *Program) String() string {
	var s strings.Builder
	pr := p.printer()
	for i := range p.Ops {
		s.WriteString(pr.line(i).String())
		s.WriteByte('\n')
	}
	return s.String()
}

// Lines is every op in words.
func (p *Program) Lines() []Line {
	pr := p.printer()
	lines := make([]Line, len(p.Ops))
	for i := range lines {
		lines[i] = pr.line(i)
	}
	return lines
}

func (l Line) String() string {
	var s strings.Builder
	index := strconv.Itoa(l.Index)
	s.WriteString("    "[:max(0, 4-len(index))] + index + "  ")
	if l.Result != "" {
		s.WriteString(l.Result + " = ")
	}
	s.WriteString(l.Call)
	if l.Call != "jump" {
		s.WriteString("(" + strings.Join(l.Args, ", ") + ")")
	}
	if l.ZeroFails {
		s.WriteString("  0 is EPIPE")
	}
	if l.Retry {
		s.WriteString("  EAGAIN again")
	}
	if l.Target >= 0 {
		if len(l.Expected) > 0 {
			s.WriteString("  " + strings.Join(l.Expected, " "))
		}
		s.WriteString(" → " + strconv.Itoa(l.Target))
	}
	if l.Note.Text != "" {
		s.WriteString("  # " + escape.Line(l.Note.Text))
	}
	if l.Note.Pointer != "" {
		s.WriteString("  (" + escape.Line(l.Note.Pointer) + ")")
	}
	return s.String()
}

// A printer knows the names of the cells: every place that is made as one or
// gets a result, numbered in the order of the data.
type printer struct {
	*Program
	cells []uint32
}

func (p *Program) printer() printer {
	pr := printer{Program: p}
	for _, r := range p.regions {
		if r.kind == regionCell {
			pr.cells = append(pr.cells, r.off)
		}
	}
	for i := range p.Ops {
		o := &p.Ops[i]
		if o.out.off != 0 {
			pr.cells = append(pr.cells, o.out.off)
		}
		for i := range int(o.nargs) {
			if a := o.arg(i); a.kind == argCell {
				pr.cells = append(pr.cells, uint32(a.value))
			}
		}
	}
	slices.Sort(pr.cells)
	pr.cells = slices.Compact(pr.cells)
	return pr
}

func (pr printer) line(i int) Line {
	o := &pr.Ops[i]
	l := Line{Index: i, Call: o.Name(), Target: int(o.target) - 1, ZeroFails: o.flags&flagZeroFails != 0, Note: o.Note}
	if o.isJump() {
		l.Call, l.ZeroFails = "jump", false
		return l
	}
	l.Args = pr.args(o)
	if o.forget {
		l.Args[0], l.Args[1] = "pages of the calls so far", "their size"
	}
	if o.out.off != 0 {
		l.Result, _ = pr.cell(o.out.off)
	}
	for _, errno := range o.errnos[:o.nerrs] {
		l.Expected = append(l.Expected, errnoName(errno))
	}
	if o.flags&flagAnyErrno != 0 {
		l.Expected = append(l.Expected, "any")
	}
	l.Retry = o.flags&flagRetry != 0
	return l
}

func errnoName(errno uint16) string {
	if name := unix.ErrnoName(unix.Errno(errno)); name != "" {
		return name
	}
	return "errno " + strconv.Itoa(int(errno))
}

func (pr printer) cell(off uint32) (string, bool) {
	i, ok := slices.BinarySearch(pr.cells, off)
	return "$" + strconv.Itoa(i+1), ok
}

// args are the arguments of an op, with the names that the kernel's headers have for them.
func (pr printer) args(o *Op) []string {
	call, known := o.Name(), make([]uint64, o.nargs)
	for i := range known {
		if o.kinds[i] < argAddr {
			known[i] = o.values[i]
		}
	}
	list := make([]string, o.nargs)
	for i := range list {
		a := o.arg(i)
		switch a.kind {
		case argImm, argInt:
			list[i] = argname.Arg(call, known, i)
		case argAddr:
			list[i] = pr.named(call, i, uint32(a.value))
		}
		if list[i] == "" {
			list[i] = pr.arg(a)
		}
	}
	return list
}

// named is a structure whose words have names, "" for another place.
func (pr printer) named(call string, arg int, off uint32) string {
	r := findRegion(pr.regions, off)
	if r.kind != regionWords || off != r.off || argname.Word(call, arg, 0, 0) == "" {
		return ""
	}
	var words []string
	for at := off; at < r.off+r.size; at += 8 {
		word, isCell := pr.cell(at)
		_, isAddress := slices.BinarySearch(pr.pointer, at)
		if !isCell && !isAddress {
			word = argname.Word(call, arg, len(words), binary.LittleEndian.Uint64(pr.image[at:]))
		}
		if word == "" {
			word = pr.word(at)
		}
		words = append(words, word)
	}
	return "{" + strings.Join(words, " ") + "}"
}

func (pr printer) arg(a Arg) string {
	switch a.kind {
	case argAddr:
		return pr.place(uint32(a.value))
	case argCell:
		name, _ := pr.cell(uint32(a.value))
		return name
	case argInt:
		if int64(a.value) == unix.AT_FDCWD {
			return "AT_FDCWD"
		}
		return strconv.FormatInt(int64(a.value), 10)
	}
	return number(a.value)
}

func number(v uint64) string {
	if v < 10 {
		return strconv.FormatUint(v, 10)
	}
	return "0x" + strconv.FormatUint(v, 16)
}

// place is what an address points to.
func (pr printer) place(off uint32) string {
	r := findRegion(pr.regions, off)
	if name, ok := pr.cell(off); ok && r.kind == regionCell {
		return "&" + name
	}
	inside := off - r.off
	if r.kind == regionString && inside < r.size {
		return strconv.Quote(string(pr.image[off : r.off+r.size-1]))
	}
	s := pr.region(r)
	if inside > 0 {
		s += "+" + strconv.Itoa(int(inside))
	}
	return s
}

func (pr printer) region(r region) string {
	content := pr.image[r.off : r.off+r.size]
	switch r.kind {
	case regionZeroed:
		n := 0
		for _, z := range pr.regions {
			if z.kind == regionZeroed && z.off <= r.off {
				n++
			}
		}
		return "buf" + strconv.Itoa(n) + "[" + strconv.Itoa(len(content)) + "]"
	case regionString:
		return strconv.Quote(string(content[:len(content)-1]))
	}
	// Words or bytes, which may hold cells.
	var s []string
	for at, end := r.off, r.off+r.size; at < end; {
		name, ok := pr.cell(at)
		switch {
		case ok:
			s = append(s, name)
			at += 8
		case r.kind == regionWords:
			s = append(s, pr.word(at))
			at += 8
		default:
			next := end
			if i, _ := slices.BinarySearch(pr.cells, at); i < len(pr.cells) {
				next = min(next, pr.cells[i])
			}
			s = append(s, bytesText(pr.image[at:next]))
			at = next
		}
	}
	if r.kind == regionBytes && len(s) == 1 {
		return s[0]
	}
	return "{" + strings.Join(s, " ") + "}"
}

func (pr printer) word(off uint32) string {
	v := binary.LittleEndian.Uint64(pr.image[off:])
	if _, ok := slices.BinarySearch(pr.pointer, off); ok {
		return pr.place(uint32(v - dataBase))
	}
	if int64(v) < 0 && int64(v) >= -maxErrno {
		return strconv.FormatInt(int64(v), 10)
	}
	return number(v)
}

// bytesText is text as a string, other short content in hexadecimal, and of the
// rest enough to tell it from other content.
func bytesText(content []byte) string {
	if printable(content) {
		return strconv.Quote(string(content))
	}
	if len(content) <= 64 {
		return "hex:" + hex.EncodeToString(content)
	}
	h := fnv.New64a()
	h.Write(content)
	return strconv.Itoa(len(content)) + " bytes fnv:" + strconv.FormatUint(h.Sum64(), 16)
}

func printable(content []byte) bool {
	for _, c := range content {
		if (c < ' ' || c > '~') && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}
