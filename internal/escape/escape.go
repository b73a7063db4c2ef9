package escape

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Line returns a text as one line that a terminal shows as it is: line breaks, ESC and all
// other control characters (also those of C1, which are escape sequences of one byte),
// the controls that turn the direction of writing, and bytes that are not UTF-8 are written
// as in Go, \x1b or \u202e. What can be printed stays, backslashes too.
func Line(text string) string {
	at := firstUnsafe(text)
	if at == len(text) {
		return text
	}
	var b strings.Builder
	b.WriteString(text[:at])
	for at < len(text) {
		r, size := utf8.DecodeRuneInString(text[at:])
		if safe(r, size) {
			b.WriteString(text[at : at+size])
		} else {
			quoted := strconv.Quote(text[at : at+size])
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		at += size
	}
	return b.String()
}

// Message is Line for an error into which others are joined, each on a line of its own
// (errors.Join): they are separated by semicolons.
func Message(text string) string { return Line(strings.ReplaceAll(text, "\n", "; ")) }

func firstUnsafe(text string) int {
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		if !safe(r, size) {
			return at
		}
		at += size
	}
	return len(text)
}

// safe asks for letters, marks, numbers, punctuation, symbols and the ASCII space, which
// the format controls of Unicode are not.
func safe(r rune, size int) bool { return strconv.IsPrint(r) && (r != utf8.RuneError || size > 1) }
