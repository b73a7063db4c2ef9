package json

import "strconv"

const (
	// maxDepth bounds nesting. The deepest path of an OCI config has 7 levels;
	// unknown fields may go deeper, but a document that nests by the million
	// is an attack on the reader.
	maxDepth = 512

	// maxValues bounds how many array elements and object members are handed
	// to the caller. "{}," is three bytes of JSON and may become a structure of
	// 120 bytes; without this bound a large file costs forty times its size.
	// The kernel takes about 200 000 arguments for a process at most.
	maxValues = 1 << 18

	// maxFaults bounds the faults kept; the others are only counted.
	maxFaults = 50
)

// Decoder reads one JSON document, value by value. The usual form is
//
//	d := json.NewDecoder(data)
//	for d.Object(); d.Next(); {
//		switch d.Key() {
//		case "id":
//			s.ID = d.String()
//		case "mounts":
//			for d.Array(); d.Next(); {
//				s.Mounts = append(s.Mounts, d.String())
//			}
//		}
//	}
//	return d.Close()
//
// A value that the loop does not read is skipped (and still checked to be
// JSON). A value of another type than asked for is noted as a fault and
// skipped; the zero value is returned. After a syntax error every call returns
// the zero value and every loop ends; Close tells.
type Decoder struct {
	src    string
	pos    int
	err    *SyntaxError
	path   []step
	values int // members and elements handed out

	faults []Fault
	more   int // faults beyond maxFaults

	// NoteUnknown asks those who read objects to note keys that they don't know as faults.
	NoteUnknown bool

	strings []string // space for the string lists that Strings returns

	steps [12]step // first backing of path: enough for every OCI document
}

// step is one container on the way from the document's root to the current
// value.
type step struct {
	key   string // of the current member, in an object
	count int    // members or elements begun
	value int    // offset of the current member's value
	close byte   // '}' or ']'; 0 where the value was no container
}

// A Fault is a value that is valid JSON but not what the caller asked for.
type Fault struct {
	Pointer string // RFC 6901; "" is the whole document
	Message string
}

func (f Fault) Error() string {
	if f.Pointer == "" {
		return f.Message
	}
	return f.Pointer + ": " + f.Message
}

// NewDecoder starts reading a document. The data is copied once: strings that
// the decoder returns are parts of that copy, so the caller may reuse data.
func NewDecoder(data []byte) *Decoder {
	d := &Decoder{src: string(data)}
	d.path = d.steps[:0]
	return d
}

// Close checks that nothing follows the value, and returns the syntax error or
// else the first fault, if there was any.
func (d *Decoder) Close() error {
	if err := d.Syntax(); err != nil {
		return err
	}
	if len(d.faults) > 0 {
		return d.faults[0]
	}
	return nil
}

// Syntax ends the reading as Close does, but leaves the faults to Faults.
func (d *Decoder) Syntax() error {
	d.peek()
	if d.pos < len(d.src) {
		d.failExpected("the end of the document")
	}
	if d.err != nil {
		return d.err
	}
	return nil
}

// Faults returns the faults found so far, and how many more there were than
// are kept.
func (d *Decoder) Faults() (kept []Fault, more int) { return d.faults, d.more }

// Fault notes that the current value is not what it should be.
func (d *Decoder) Fault(message string) {
	d.faultAt(d.pointer, message)
}

// Missing notes that the object just read lacks a key. It is called after the
// object's loop.
func (d *Decoder) Missing(key string) {
	d.faultAt(func() []byte { return AppendKey(d.pointer(), key) }, "is required, but missing")
}

// faultAt takes a function, so that a pointer is built only for faults that are
// kept: a large array of wrong values would spend its time there otherwise.
func (d *Decoder) faultAt(pointer func() []byte, message string) {
	if d.err != nil {
		return
	}
	if len(d.faults) == maxFaults {
		d.more++
		return
	}
	d.faults = append(d.faults, Fault{Pointer: string(pointer()), Message: message})
}

// pointer returns where the current value stands.
func (d *Decoder) pointer() []byte {
	var p []byte
	for i := range d.path {
		switch s := &d.path[i]; {
		case s.count == 0:
		case s.close == ']':
			p = AppendIndex(p, s.count-1)
		default:
			p = AppendKey(p, s.key)
		}
	}
	return p
}

// Object opens the current value as an object; Next must be called until it
// returns false. Where the value is not an object that is a fault, Object returns
// false, and so does the next call of Next.
func (d *Decoder) Object() bool { return d.open('{', '}', "an object") }

// Array opens the current value as an array, in the same way.
func (d *Decoder) Array() bool { return d.open('[', ']', "an array") }

func (d *Decoder) open(opening, closing byte, want string) bool {
	if d.peek() != opening {
		d.mismatch(want)
		d.path = append(d.path, step{})
		return false
	}
	if len(d.path) == maxDepth {
		d.failDepth()
		d.path = append(d.path, step{})
		return false
	}
	d.pos++
	d.path = append(d.path, step{close: closing})
	return true
}

func (d *Decoder) failDepth() {
	d.fail(d.pos, "nested deeper than "+strconv.Itoa(maxDepth)+" levels")
}

// Next goes to the next member of the open object, or the next element of the
// open array. It returns false where there is none, and the container is then
// closed.
func (d *Decoder) Next() bool {
	top := &d.path[len(d.path)-1]
	if top.count > 0 && d.pos == top.value && d.err == nil {
		d.Skip()
	}
	c := d.peek()
	if c == top.close { // also 0 == 0: no container, or the end after a syntax error
		if c != 0 {
			d.pos++
		}
		d.path = d.path[:len(d.path)-1]
		return false
	}
	if top.close == 0 || d.err != nil {
		d.path = d.path[:len(d.path)-1]
		return false
	}
	if top.count > 0 {
		if c != ',' {
			return d.failNext("a comma or " + strconv.QuoteRune(rune(top.close)))
		}
		d.pos++
		c = d.peek()
	}
	if top.close == '}' {
		if c != '"' {
			return d.failNext("a key in double quotes")
		}
		top.key = d.scanString()
		if d.peek() != ':' {
			return d.failNext("a colon after the key")
		}
		d.pos++
		d.peek()
	}
	if d.err != nil {
		return d.failNext("")
	}
	top.count++
	top.value = d.pos
	if d.values++; d.values > maxValues {
		d.fail(d.pos, "more than "+strconv.Itoa(maxValues)+" values")
		return d.failNext("")
	}
	return true
}

func (d *Decoder) failNext(want string) bool {
	d.failExpected(want)
	d.path = d.path[:len(d.path)-1]
	return false
}

// Key returns the key of the current member of the innermost open object.
func (d *Decoder) Key() string { return d.path[len(d.path)-1].key }
