package integration

import (
	"encoding/json"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/berth-runtime/berth/test/harness"
)

// tables are commands that write one. C stands for a container that runs, G for its cgroup.
var tables = []string{
	"list", "ps C", "top -n 1 -d 0.1", "inspect C", "version", "gc", "gc -n", "doctor", "cgroup list G", "cgroup controllers", "cgroup controllers -m",
	"cgroup get G", "cgroup tree G", "cgroup top -n 1 -d 0.1 G", "cgroup ledger", "cgroup translate --layout unified CONFIG", "cgroup translate --layout legacy CONFIG",
	"seccomp explain default", "seccomp explain default clone3", "seccomp compile default", "events --stats C", "explain BUNDLE",
}

// prose is what is read line by line, so that a terminal may wrap it.
var prose = regexp.MustCompile(`^(inspect|version|doctor|events|explain|cgroup get)\b`)

// tableWords are the arguments of a command.
func tableWords(c *harness.Container, command string) []string {
	words := strings.Fields(command)
	for i, word := range words {
		switch word {
		case "C":
			words[i] = c.ID
		case "G":
			words[i] = c.Spec.Linux.CgroupsPath
		case "CONFIG":
			words[i] = c.Dir + "/config.json"
		case "BUNDLE":
			words[i] = c.Dir
		}
	}
	return words
}

func TestTablesAsJSON(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "hang").RunDetached()
	for _, command := range tables {
		words := tableWords(c, command)
		r := b.Berth(append(words, "--json")...)
		if strings.HasPrefix(command, "doctor") {
			r.Code = 0 // what this machine misses is not the question
		}
		r.OK(t)
		d := json.NewDecoder(strings.NewReader(r.Stdout))
		n := 0
		for d.More() {
			var any any
			if err := d.Decode(&any); err != nil {
				t.Errorf("%s --json: %v in %q", command, err, r.Stdout)
				break
			}
			n++
		}
		if n == 0 {
			t.Errorf("%s --json: %q", command, r.Stdout)
		}
	}
}

// In a pipe there are no colours, whatever the environment says, and on a terminal none where
// NO_COLOR is set.
func TestNoColour(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "hang").RunDetached()
	for _, command := range tables {
		cmd := b.Command(tableWords(c, command)...)
		cmd.Env = []string{"TERM=xterm-256color", "LANG=C.UTF-8"}
		if r := cmd.Run(); strings.Contains(r.Stdout, "\x1b") {
			t.Errorf("%s in a pipe: %q", command, r.Stdout)
		}
		if strings.Contains(command, "top") {
			continue // it draws, with or without colours
		}
		if text := atWidth(b, tableWords(c, command), 80, "NO_COLOR=1"); strings.Contains(text, "\x1b") {
			t.Errorf("%s with NO_COLOR: %q", command, text)
		}
	}
}

// atWidth is what a command writes on a terminal of some width.
func atWidth(b *harness.Box, words []string, width uint16, env ...string) string {
	b.T.Helper()
	term := b.Terminal()
	term.Resize(50, width)
	cmd := b.Command(words...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = term.Slave, term.Slave, term.Slave
	cmd.Env = append([]string{"TERM=xterm-256color", "LANG=C.UTF-8"}, env...)
	cmd.Attr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	running := cmd.Start()
	text := make(chan string)
	go func() { text <- term.All() }() // more than the terminal holds may come
	running.Wait()
	term.Slave.Close()
	return strings.ReplaceAll(<-text, "\r\n", "\n")
}

// A table's lines do not wrap, and a wide terminal gets them whole.
func TestTablesFitTheTerminal(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "hang").RunDetached()
	escapes := regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")
	for _, command := range tables {
		if prose.MatchString(command) {
			continue
		}
		for _, width := range []uint16{40, 80, 200} {
			text := escapes.ReplaceAllString(atWidth(b, tableWords(c, command), width), "")
			for line := range strings.SplitSeq(text, "\n") {
				if n := utf8.RuneCountInString(line); n > int(width) {
					t.Errorf("%s on %d columns: a line of %d: %q", command, width, n, line)
					break
				}
			}
			if strings.Contains(command, "list") && !strings.HasPrefix(command, "cgroup") && !strings.Contains(text, c.ID) {
				t.Errorf("%s on %d columns: %q", command, width, text)
			}
		}
	}
}
