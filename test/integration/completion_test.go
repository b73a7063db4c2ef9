package integration

import (
	"os"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// At a tab bash has the script's function complete the word, by asking the engine: for containers
// of --root, cgroups that there are, signals, system calls and limits.
func TestCompletionInBash(t *testing.T) {
	b := harness.New(t)
	if r := b.Berth("completion", "bash"); r.Code != 0 {
		harness.Skip(t, "needs an engine with completion")
	}
	path := demo(b)
	c := hanging(b)
	// What others call their cgroups is never executed.
	odd := path + "/$(touch${IFS}" + b.Tag + ")"
	tool(b, "create", odd).OK(t)
	term, running := shell(b)
	b.WriteFile("berth.bash", b.Berth("completion", "bash").OK(t).Stdout, 0o644)
	if err := os.Symlink(harness.Engine(t), b.Path("berth")); err != nil {
		t.Fatal(err)
	}
	// A key shows what the line has become, and empties it.
	b.WriteFile("show.bash", `PATH=$PWD:$PATH
source ./berth.bash
show() { printf '%s<%s>\n' line "$READLINE_LINE"; READLINE_LINE='' READLINE_POINT=0; }
bind -x '"\C-xe": show'
echo sour""ced
`, 0o644)
	term.Write("source ./show.bash\r")
	term.Until("sourced\r\n")
	term.Until("$ ")
	begun, kept := path[:len(path)-1], "berth --root "+b.Root+" "
	id, part := c.ID, c.ID[:len(c.ID)-1]
	for _, test := range []struct{ line, want string }{
		{kept + "kill " + part, kept + "kill " + id + " "},
		{"berth --root=" + b.Root + " kill " + part, "berth --root=" + b.Root + " kill " + id + " "},
		{kept + "delete --force " + part, kept + "delete --force " + id + " "},
		{"berth kill " + part, "berth kill " + part}, // of another root
		{"berth kill x WIN", "berth kill x WINCH "},
		{"berth kill x SIGVT", "berth kill x SIGVTALRM "},
		{"berth seccomp explain def", "berth seccomp explain default "},
		{"berth seccomp explain default pivot", "berth seccomp explain default pivot_root "},
		{"berth cgroup tree " + begun, "berth cgroup tree " + path}, // and those in it
		{"berth cgroup get -g pids:" + begun, "berth cgroup get -g pids:" + path},
		{"berth cgroup delete " + path + "/", "berth cgroup delete " + path + `/\$\(touch\$\{IFS\}` + b.Tag + `\) `},
		{"berth cgroup set memory.rese", "berth cgroup set memory.reservation="},
		{"berth cgroup set -r pids.l", "berth cgroup set -r pids.limit="},
		{"berth cgroup get -r blockIO.throttleReadB", "berth cgroup get -r blockIO.throttleReadBpsDevice "},
		{"berth box --ulimit nofi", "berth box --ulimit nofile="},
		{"berth box --cap-add NET_R", "berth box --cap-add NET_RAW "},
		{"berth box --net=no", "berth box --net=none "},
		{"berth --cgroup-manager systemd box --net no", "berth --cgroup-manager systemd box --net none "},
	} {
		term.Write(test.line + "\t\x18e")
		term.Until("line<")
		if got := strings.TrimSuffix(term.Until(">\r\n"), ">\r\n"); got != test.want {
			t.Errorf("%q becomes %q, want %q", test.line, got, test.want)
		}
	}
	term.Write("exit\r")
	running.Wait().OK(t)
	if _, err := os.Stat(b.Path(b.Tag)); err == nil {
		t.Error("a cgroup's name was executed")
	}
}
