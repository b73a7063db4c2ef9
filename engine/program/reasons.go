package program

import (
	"bytes"
	"strconv"
)

// Before a call on a file system's context fails for the runtime, the Program sends
// what the kernel has said about it: a head of ReasonsHead bytes, then MaxReasons
// messages, each in a field of ReasonLen that is filled up with NULs.
const (
	reasonsMagic = "BERTHWHY"
	ReasonsHead  = len(reasonsMagic)
	ReasonLen    = 256
	MaxReasons   = 3 // the kernel keeps eight, but one error is the rule

	// ReasonsLen is the size of such a record.
	ReasonsLen = ReasonsHead + MaxReasons*ReasonLen
)

// ReasonsRecord is such a record without any message.
func ReasonsRecord() []byte {
	return append([]byte(reasonsMagic), make([]byte, MaxReasons*ReasonLen)...)
}

// ParseReasons reads such a record: the last error in it, or the last message where
// none is an error. What cannot be printed is escaped.
func ParseReasons(record []byte) (string, bool) {
	if len(record) != ReasonsLen || string(record[:ReasonsHead]) != reasonsMagic {
		return "", false
	}
	var reason string
	var isError bool
	for field := range MaxReasons {
		text := record[ReasonsHead+field*ReasonLen:][:ReasonLen]
		if end := bytes.IndexByte(text, 0); end >= 0 {
			text = text[:end]
		}
		// "e " for an error, "w " for a warning, "i " for the rest (fs/fs_context.c).
		level, said, ok := bytes.Cut(bytes.TrimSpace(text), []byte(" "))
		if !ok || isError && string(level) != "e" {
			continue
		}
		quoted := strconv.QuoteToASCII(string(said))
		reason, isError = quoted[1:len(quoted)-1], string(level) == "e"
	}
	return reason, true
}
