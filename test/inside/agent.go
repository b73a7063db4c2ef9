package main

import (
	"bufio"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/inside/view"
)

// agent does what it is told, by the lines of its standard input, and answers each with a line: the
// words of "inside try", one at a time. So a test's attacker acts when the test wants it to, with
// the rights of whatever process it got into. It ends with its input.
func agent() {
	ended := make(chan struct{})
	go func() { // not on the main thread, which may be told to leave the others alone
		converse()
		close(ended)
	}()
	select {
	case <-ended:
	case <-leave:
		unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
	}
}

// leave has the main thread end, and no other.
var leave = make(chan struct{}, 1)

func converse() {
	answer := func(what, result string, err error) {
		print(view.Attempt{What: what, Errno: errnoName(err), Result: result})
	}
	answer("ready", "", nil)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		verb, rest, _ := strings.Cut(in.Text(), "=")
		attempt, known := attempts[verb]
		if !known {
			fail("nothing is known about trying " + verb)
		}
		result, err := attempt(strings.Split(rest, ","))
		answer(in.Text(), result, err)
	}
}
