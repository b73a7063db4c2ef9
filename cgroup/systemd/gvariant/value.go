package gvariant

import "strconv"

// Value is a value with its type.
type Value struct {
	// Type is the D-Bus signature, with "m" for maybe.
	Type string
	// Column is where in the text it begins, counted in bytes from 1.
	Column int

	// Which of these holds the value is a matter of the type.
	Bool    bool    // b
	Int     int64   // n, i, x, h
	Uint    uint64  // y, q, u, t
	Double  float64 // d
	Text    string  // s, o, g
	Members []Value // the elements of an array or tuple, the two halves of a dict entry, what is in a variant, and in a maybe if anything is
}

// Error says what is wrong with a text, and where.
type Error struct {
	Column  int // counted in bytes from 1
	Message string
}

func (e *Error) Error() string {
	return "column " + strconv.Itoa(e.Column) + ": " + e.Message
}
