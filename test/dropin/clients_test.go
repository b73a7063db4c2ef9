package dropin

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// client is what Docker and Podman have in common: most of their command lines.
type client interface {
	Call(args ...string) harness.Result
	Command(args ...string) *harness.Command
}

func inspect(t *testing.T, c client, name, format string) string {
	t.Helper()
	return strings.TrimSpace(c.Call("inspect", "--format", format, name).OK(t).Stdout)
}

// Clients make their own status, 125 to 127, of the words in which a runtime says why it failed.
func statuses(t *testing.T, c client) {
	t.Helper()
	for _, test := range []struct {
		code int
		args []string
	}{
		{7, []string{"sh", "-c", "exit 7"}},
		{137, []string{"sh", "-c", "kill -9 $$"}},
		{127, []string{"nosuch"}},
		{127, []string{"/no/such"}},
		{126, []string{"/etc/passwd"}},
		{126, []string{"/etc"}},
	} {
		// A first process is not killed by a signal of its own namespace.
		args := append([]string{"run", "--rm", "--pid", "host", image}, test.args...)
		if r := c.Call(args...); r.Code != test.code {
			t.Errorf("%q: status %d, want %d: %s", test.args, r.Code, test.code, r.Stderr)
		}
	}
}

// What the options say is what a process in the container finds.
func confinement(t *testing.T, c client, seccomp string) {
	t.Helper()
	const script = `id -u; hostname; pwd; echo $A; ulimit -n; ulimit -Hn; grep -E "^(CapEff|CapBnd|NoNewPrivs|Seccomp):" /proc/self/status
		touch /x; touch /scratch/x && grep -c " /scratch tmpfs .*size=1024k" /proc/mounts; mkdir /scratch/d; cat /proc/sys/kernel/msgmax; echo to; echo the >&2; cat`
	call := c.Command("run", "--rm", "-i", "--user", "1000:1000", "--read-only", "--tmpfs", "/scratch:size=1m", "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
		"--security-opt", "seccomp="+seccomp, "--ulimit", "nofile=100:200", "--ulimit", "nproc=4096:4096", "--hostname", "inner", "--env", "A=b", "--workdir", "/tmp", "--sysctl", "kernel.msgmax=4096", image, "sh", "-c", script)
	in, err := os.Open(seccomp)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	call.Stdin = in
	r := call.Run().Exits(t, 0)
	want := "1000\ninner\n/tmp\nb\n100\n200\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n1\n4096\nto\n" + noMkdir
	if r.Stdout != want {
		t.Errorf("in the container:\n%s\nwant:\n%s", r.Stdout, want)
	}
	for _, words := range []string{"touch: /x: Read-only file system", "mkdir: can't create directory '/scratch/d': Operation not permitted", "the\n"} {
		if !strings.Contains(r.Stderr, words) {
			t.Errorf("the errors lack %q: %s", words, r.Stderr)
		}
	}
}

const noMkdir = `{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO"}]}`

// terminal sits at exec -it, in a container that runs.
func terminal(t *testing.T, b *harness.Box, c client, name string) {
	t.Helper()
	term := b.Terminal()
	call := c.Command("exec", "-it", name, "sh")
	call.Stdin, call.Stdout, call.Stderr = term.Slave, term.Slave, term.Slave
	call.Attr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	running := call.Start()
	term.Until("# ")
	term.Write("echo $((6*7))-$(tty)\r")
	term.Until("42-/dev/pts/")
	term.Until("# ")
	term.Write("exit 5\r")
	running.Wait().Exits(t, 5)
}

// endless says when it is ready, and ends by TERM with 3.
const endless = `trap "exit 3" TERM; echo ready; echo "an error" >&2; while :; do sleep 0.1; done`

func readyTimes(c client, name string) int {
	return strings.Count(c.Call("logs", name).Stdout, "ready\n")
}

// life is that of a container in the background. Not everybody may freeze one.
func life(t *testing.T, b *harness.Box, c client, freeze bool) {
	t.Helper()
	const name = "life"
	c.Call("run", "-d", "--name", name, "--stop-timeout", "30", image, "sh", "-c", endless).OK(t)
	wait.Until(t, "the container's output in the log", func() bool { return readyTimes(c, name) == 1 })
	if out := c.Call("logs", name).OK(t).Stderr; out != "an error\n" {
		t.Errorf("errors in the log: %q", out)
	}
	r := c.Call("exec", "--user", "1000:1000", "--workdir", "/tmp", "--env", "A=b", name, "sh", "-c", `echo $(id -u) $(pwd) $A; exit 5`).Exits(t, 5)
	if r.Stdout != "1000 /tmp b\n" {
		t.Errorf("exec printed %q", r.Stdout)
	}
	for _, test := range []struct {
		code    int
		program string
	}{{127, "/no/such"}, {126, "/etc"}} {
		// Docker before 23 says 126 of whatever can't be executed.
		if r := c.Call("exec", name, test.program); r.Code != test.code && r.Code != 126 {
			t.Errorf("exec of %s: status %d, want %d", test.program, r.Code, test.code)
		}
	}
	if out := c.Call("top", name).OK(t).Stdout; !strings.Contains(out, "while :") {
		t.Errorf("top does not show the process: %s", out)
	}
	terminal(t, b, c, name)
	if freeze {
		c.Call("pause", name).OK(t)
		if got := inspect(t, c, name, "{{.State.Status}}"); got != "paused" {
			t.Errorf("a paused container is %s", got)
		}
		c.Call("unpause", name).OK(t)
		if out := c.Call("stats", "--no-stream", "--format", "{{.Name}} {{.MemUsage}}", name).OK(t).Stdout; !strings.HasPrefix(out, name+" ") || strings.HasPrefix(out, name+" 0B /") {
			t.Errorf("stats: %q", out)
		}
	}
	c.Call("restart", name).OK(t)
	wait.Until(t, "the restarted container's output", func() bool { return readyTimes(c, name) == 2 })
	c.Call("stop", name).OK(t)
	if got := inspect(t, c, name, "{{.State.ExitCode}}"); got != "3" {
		t.Errorf("a stopped container has status %s, want that of its handler", got)
	}
	c.Call("start", name).OK(t)
	c.Call("kill", name).OK(t)
	c.Call("wait", name)
	if got := inspect(t, c, name, "{{.State.ExitCode}}"); got != "137" {
		t.Errorf("a killed container has status %s", got)
	}
	c.Call("rm", name).OK(t)
}

// together are containers as compose makes them: one has the namespaces and the volume of the
// other.
func together(t *testing.T, c client) {
	t.Helper()
	c.Call("run", "-d", "--name", "server", "--ipc", "shareable", "--volume", "shared:/data", image, "sh", "-c", "echo from the server > /data/page; exec httpd -f -p 8080 -h /data").OK(t)
	r := c.Call("run", "--rm", "--network", "container:server", "--pid", "container:server", "--ipc", "container:server", "--volumes-from", "server", image, "sh", "-c",
		`until wget -q -O - http://127.0.0.1:8080/page; do sleep 0.1; done 2> /dev/null; cat /data/page; ps -o args | grep -c "^[h]ttpd -f"`).OK(t)
	if r.Stdout != "from the server\nfrom the server\n1\n" {
		t.Errorf("the second container printed %q", r.Stdout)
	}
	for _, ns := range []string{"net", "pid", "ipc"} {
		r := c.Call("run", "--rm", "--network", "container:server", "--pid", "container:server", "--ipc", "container:server", image, "readlink", "/proc/self/ns/"+ns).OK(t)
		if in := c.Call("exec", "server", "readlink", "/proc/self/ns/"+ns).OK(t).Stdout; in != r.Stdout {
			t.Errorf("%s namespaces %q and %q", ns, in, r.Stdout)
		}
	}
	c.Call("rm", "-f", "server").OK(t)
	c.Call("volume", "rm", "shared").OK(t)
}

// build makes an image in steps that the runtime runs, quietly, and runs it.
func build(t *testing.T, b *harness.Box, c client) {
	t.Helper()
	dir := filepath.Dir(b.WriteFile("context/Dockerfile", "FROM "+image+"\nCOPY note /note\nRUN cat /note > /made && id -u >> /made\nUSER 1000\nRUN id -u > /tmp/user\nCMD cat /made /tmp/user\n", 0o644))
	b.WriteFile("context/note", "a note\n", 0o644)
	// Images are for all who may read their files.
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r := c.Call("build", "--network", "none", "--quiet", "--tag", "made", dir).OK(t)
	if strings.Contains(r.Stderr, "level=warn") {
		t.Errorf("the build warns: %s", r.Stderr)
	}
	if out := c.Call("run", "--rm", "made").OK(t).Stdout; out != "a note\n0\n1000\n" {
		t.Errorf("what was built prints %q", out)
	}
}

// limit reads a file of the cgroup in which a container's first process is.
func limit(t *testing.T, c client, name, controller, v1, v2 string) string {
	t.Helper()
	return limitOf(t, inspect(t, c, name, "{{.State.Pid}}"), controller, v1, v2)
}

// limitOf reads a file of the cgroup in which a process is.
func limitOf(t *testing.T, pid, controller, v1, v2 string) string {
	t.Helper()
	h, file := harness.Controller(t, controller), v1
	if h.Unified {
		file = v2
	}
	text, err := os.ReadFile("/proc/" + pid + "/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		// hierarchy:controllers:path
		parts := strings.SplitN(line, ":", 3)
		if len(parts) == 3 && (h.Unified && parts[0] == "0" || !h.Unified && slices.Contains(strings.Split(parts[1], ","), controller)) {
			value, err := os.ReadFile(filepath.Join(h.Dir, parts[2], file))
			if err != nil {
				t.Fatal(err)
			}
			return strings.Fields(string(value) + " -")[0]
		}
	}
	t.Fatalf("process %s is in no cgroup of %s:\n%s", pid, controller, text)
	return ""
}

// limits compares memory, CPU quota and the number of processes.
func limits(t *testing.T, c client, name, memory, quota, pids string) {
	t.Helper()
	for _, test := range []struct{ controller, v1, v2, want string }{
		{"memory", "memory.limit_in_bytes", "memory.max", memory},
		{"cpu", "cpu.cfs_quota_us", "cpu.max", quota},
		{"pids", "pids.max", "pids.max", pids},
	} {
		if got := limit(t, c, name, test.controller, test.v1, test.v2); got != test.want {
			t.Errorf("%s of %s is %s, want %s", test.controller, name, got, test.want)
		}
	}
}

var limited = []string{"run", "-d", "--name", "limited", "--memory", "64m", "--memory-swap", "64m", "--cpus", "0.5", "--pids-limit", "50"}
