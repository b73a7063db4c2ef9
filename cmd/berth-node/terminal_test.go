package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal is a pseudo-terminal of so many columns: the side that a person sees, and the one of the
// program.
func onTerminal(t *testing.T, columns uint16) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("needs a pseudo-terminal: %v", err)
	}
	t.Cleanup(func() { person.Close() })
	n := 0
	raw, err := person.SyscallConn()
	if err == nil {
		raw.Control(func(fd uintptr) {
			if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
				n, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
			}
			if err == nil {
				err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns})
			}
		})
	}
	if err == nil {
		program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return person, program
}

// written is what a command writes to a file of this program's, and what comes out at the other
// end.
func written(t *testing.T, other, file *os.File, line string) string {
	t.Helper()
	text := make(chan string)
	go func() {
		all, _ := io.ReadAll(other) // a terminal ends with EIO
		text <- strings.ReplaceAll(string(all), "\r\n", "\n")
	}()
	old := os.Stdout
	os.Stdout = file
	err := command().Execute("berth-node", strings.Fields(line), io.Discard)
	os.Stdout = old
	file.Close()
	if err != nil {
		t.Errorf("%s: %v", line, err)
	}
	return <-text
}

// Colours are for terminals that have them, where nobody minds; tables keep to the terminal's
// width; a pipe gets neither, and JSON is JSON.
func TestOnATerminal(t *testing.T) {
	conf := t.TempDir() + "/node.yaml"
	if err := os.WriteFile(conf, []byte("cgroup-driver: auto\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"plan -c " + conf, "status -c " + conf} {
		on := func(columns uint16, term, noColor string) string {
			t.Setenv("TERM", term)
			t.Setenv("NO_COLOR", noColor)
			person, program := onTerminal(t, columns)
			return written(t, person, program, command)
		}
		if text := on(200, "xterm", ""); !strings.Contains(text, "\x1b[") {
			t.Errorf("%s on a terminal has no colours:\n%s", command, text)
		}
		if text := on(200, "xterm", "1"); strings.Contains(text, "\x1b") {
			t.Errorf("%s with NO_COLOR has colours:\n%s", command, text)
		}
		if text := on(200, "dumb", ""); strings.Contains(text, "\x1b") {
			t.Errorf("%s on a dumb terminal has colours:\n%s", command, text)
		}
		heading := func(text string) string {
			for line := range strings.SplitSeq(text, "\n") {
				if strings.HasPrefix(line, "RESOURCE ") || strings.HasPrefix(line, "PART ") {
					return line
				}
			}
			t.Errorf("%s has no table:\n%s", command, text)
			return ""
		}
		t.Setenv("TERM", "xterm")
		t.Setenv("NO_COLOR", "")
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		pipe := written(t, read, write, command)
		read.Close()
		if strings.Contains(pipe, "\x1b") {
			t.Errorf("%s in a pipe has colours:\n%s", command, pipe)
		}
		wide, narrow := heading(on(200, "xterm", "1")), heading(on(40, "xterm", "1"))
		if len(narrow) > 40 || len(wide) < 60 || heading(pipe) != wide {
			t.Errorf("%s: on 40 columns %q, on 200 %q, in a pipe %q", command, narrow, wide, heading(pipe))
		}
		if read, write, err = os.Pipe(); err != nil {
			t.Fatal(err)
		}
		text := written(t, read, write, command+" --json")
		read.Close()
		if !json.Valid([]byte(text)) || len(text) < 3 {
			t.Errorf("%s --json: %q", command, text)
		}
	}
}
