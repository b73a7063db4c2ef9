package neighbour

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/berth-runtime/berth/test/inside/view"
)

// An agent is a process of a principal: test/inside, doing what it is told with the rights that it
// has.
type agent struct {
	stdin, stdout *os.File // the process's
	to, from      *os.File
	in            *bufio.Reader
}

// newAgent makes the two pipes. Its process is the caller's to start, on stdin and stdout.
func newAgent(t testing.TB) *agent {
	t.Helper()
	a := &agent{}
	var err error
	a.stdin, a.to, err = os.Pipe()
	check(t, err)
	a.from, a.stdout, err = os.Pipe()
	check(t, err)
	a.in = bufio.NewReader(a.from)
	return a
}

// ready waits for its first word, when its process has been started.
func (a *agent) ready() error {
	a.stdin.Close()
	a.stdout.Close()
	_, err := a.answer()
	return err
}

// do has it do something. The error is about the agent; what became of the deed is in the answer.
func (a *agent) do(words string) (view.Attempt, error) {
	if _, err := a.to.WriteString(words + "\n"); err != nil {
		return view.Attempt{}, err
	}
	return a.answer()
}

// patience is how long an agent may take: it waits for nobody.
const patience = 10 * time.Second

func (a *agent) answer() (got view.Attempt, err error) {
	if err := a.from.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return got, err
	}
	line, err := a.in.ReadString('\n')
	if err != nil {
		return got, err
	}
	if err := json.Unmarshal([]byte(line), &got); err != nil {
		return got, fmt.Errorf("an agent says %q: %w", line, err)
	}
	return got, nil
}

// close ends it, by the end of its input.
func (a *agent) close() {
	for _, f := range []*os.File{a.stdin, a.stdout, a.to, a.from} {
		f.Close()
	}
}
