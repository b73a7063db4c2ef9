package attacks

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

// Descriptors are to be preserved that the caller has not passed: what has their numbers is the
// runtime's own, such as the directory of the state, by which all of the host can be reached.
func TestPreserveWhatIsNotThere(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "look")
	running := b.Container("/bin/sleep", "1000").RunDetached()
	process, err := json.Marshal(&specs.Process{Args: []string{"/inside", "look"}, Cwd: "/"})
	check(t, err)
	file := b.WriteFile("process.json", string(process), 0o644)
	// With a pipe that does not block for a standard stream Go opens descriptors before the program
	// begins.
	r, w, err := os.Pipe()
	check(t, err)
	defer r.Close()
	defer w.Close()
	given, err := os.Open("/dev/null")
	check(t, err)
	defer given.Close()
	attacks := 0
	for _, nonblocking := range []bool{false, true} {
		check(t, unix.SetNonblock(int(r.Fd()), nonblocking))
		for passed := range 2 {
			extra := []*os.File{given}[:passed]
			for n := passed + 1; n < 12; n++ {
				for _, cmd := range []*harness.Command{
					c.Command("run", []string{"--preserve-fds", strconv.Itoa(n)}),
					c.Command("create", []string{"--preserve-fds", strconv.Itoa(n)}),
					running.Command("exec", []string{"--preserve-fds", strconv.Itoa(n)}, "/inside", "look"),
					running.Command("exec", []string{"--preserve-fds", strconv.Itoa(n), "--process", file}),
				} {
					attacks++
					cmd.Stdin, cmd.Extra = r, extra
					if got := cmd.Run(); got.Code == 0 || !strings.Contains(got.Stderr, "descriptor "+strconv.Itoa(3+passed)+" was not passed") {
						t.Errorf("%q, with %d passed: %d, %s %s", cmd.Args, passed, got.Code, got.Stdout, got.Stderr)
					}
				}
			}
		}
	}
	// Socket activation that the caller has not done.
	cmd := c.Command("run", nil)
	cmd.Wrap = []string{"sh", "-c", `LISTEN_FDS=2 LISTEN_PID=$$ exec "$@"`, "sh"}
	if got := cmd.Run(); got.Code == 0 || !strings.Contains(got.Stderr, "LISTEN_FDS=2") {
		t.Errorf("%d: %s %s", got.Code, got.Stdout, got.Stderr)
	}
	// What is passed is passed.
	ok := running.Command("exec", []string{"--preserve-fds", "1"}, "/inside", "look")
	ok.Extra = []*os.File{given}
	if v := harness.ParseView(t, ok.Run().OK(t).Stdout); len(v.FDs) != 4 || v.FDs[3] != "/dev/null" {
		t.Errorf("passed: %v", v.FDs)
	}
	running.Delete("--force")
	running.WaitExit()
	harness.Report(t, "attacks", attacks+1)
}
