package ociexec

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/shim/engine"
	"github.com/berth-runtime/berth/shim/reaper"
)

// role is the variable that makes this program the runtime of a test; it says what that does wrong.
const role = "BERTH_TEST_RUNTIME"

func TestMain(m *testing.M) {
	if wrong, set := os.LookupEnv(role); set {
		playRuntime(wrong, os.Args[1:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// playRuntime notes its command in the root, keeps a directory for each container there, and makes
// a process that lasts.
func playRuntime(wrong string, args []string) {
	value := func(option string) string {
		if i := slices.Index(args, option); i >= 0 {
			return args[i+1]
		}
		return ""
	}
	fail := func(err error) {
		if err != nil {
			log, _ := os.OpenFile(value("--log"), os.O_WRONLY|os.O_APPEND, 0)
			fmt.Fprintf(log, "{\"level\":\"error\",\"msg\":%q}\n", err)
			os.Exit(1)
		}
	}
	root, id := value("--root"), args[len(args)-1]
	verb := args[6]
	calls, err := os.OpenFile(filepath.Join(root, "calls"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	fail(err)
	fmt.Fprintln(calls, verb, slices.Contains(args, "--force"), id)
	switch verb {
	case "create", "exec":
		if wrong == "exists" {
			fail(fmt.Errorf("container with id %s already exists", id))
		}
		os.Mkdir(filepath.Join(root, id), 0o700)
		sleep := exec.Command("/bin/sleep", "1000")
		fail(sleep.Start())
		pid := strconv.Itoa(sleep.Process.Pid)
		fail(os.WriteFile(filepath.Join(root, id, verb), []byte(pid), 0o600))
		if wrong != "no pid file" {
			fail(os.WriteFile(value("--pid-file"), []byte(pid), 0o600))
		}
		if socket := value("--console-socket"); socket != "" {
			conn, err := net.Dial("unix", socket)
			fail(err)
			conn.Write([]byte("no terminal"))
		}
	case "delete":
		text, err := os.ReadFile(filepath.Join(root, id, "create"))
		fail(err)
		pid, err := strconv.Atoi(string(text))
		fail(err)
		unix.Kill(pid, unix.SIGKILL)
		fail(os.RemoveAll(filepath.Join(root, id)))
	}
}

var theReaper = sync.OnceValues(reaper.Start)

type world struct {
	*Runtime
	t      *testing.T
	root   string
	bundle string
}

func newWorld(t *testing.T, wrong string) *world {
	t.Helper()
	t.Setenv(role, wrong)
	r, err := theReaper()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, root: t.TempDir(), bundle: t.TempDir()}
	if w.Runtime, err = New(Config{Binary: "/proc/self/exe", Root: w.root}, r); err != nil {
		t.Fatal(err)
	}
	return w
}

// calls are those of the runtime until now.
func (w *world) calls() string {
	text, _ := os.ReadFile(filepath.Join(w.root, "calls"))
	return strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", ", ")
}

// A container whose pid or terminal did not come is there, and nobody has it: it is removed.
func TestHalfMadeIsRemoved(t *testing.T) {
	for _, test := range []struct {
		wrong, calls string
		terminal     bool
	}{
		{"no pid file", "create false c, delete true c", false},
		{"no terminal", "create false c, delete true c", true},
		{"exists", "create false c", false}, // another's stays
	} {
		w := newWorld(t, test.wrong)
		_, _, err := w.Create(context.Background(), &engine.Create{ID: "c", Bundle: w.bundle, Stdio: engine.Stdio{Terminal: test.terminal}})
		if err == nil {
			t.Errorf("%s: no error", test.wrong)
		}
		if got := w.calls(); got != test.calls {
			t.Errorf("%s: calls %q, want %q", test.wrong, got, test.calls)
		}
		if left, _ := filepath.Glob(filepath.Join(w.bundle, ".*")); len(left) > 0 {
			t.Errorf("%s: left %v", test.wrong, left)
		}
	}
}

// Of an exec without its terminal the process is ended, and the container stays.
func TestHalfMadeExec(t *testing.T) {
	w := newWorld(t, "")
	c, _, err := w.Create(context.Background(), &engine.Create{ID: "c", Bundle: w.bundle})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Exec(context.Background(), &engine.Exec{
		ID: "e", Process: []byte("{}"), PidFile: filepath.Join(w.bundle, "e.pid"), Stdio: engine.Stdio{Terminal: true},
	})
	if err == nil {
		t.Error("no error")
	}
	text, err := os.ReadFile(filepath.Join(w.root, "c", "exec"))
	if err != nil {
		t.Fatal(err)
	}
	pid, _ := strconv.Atoi(string(text))
	wait.Until(t, fmt.Sprintf("the end of the exec's process %d", pid), func() bool { return unix.Kill(pid, 0) == unix.ESRCH })
	if err := c.Delete(context.Background(), true); err != nil {
		t.Error(err)
	}
	if got, want := w.calls(), "create false c, exec false c, delete true c"; got != want {
		t.Errorf("calls %q, want %q", got, want)
	}
}

func TestErrorsOfARuntime(t *testing.T) {
	w := newWorld(t, "")
	c := &container{runtime: w.Runtime, id: "nobody", bundle: w.bundle}
	if err := c.Delete(context.Background(), false); err != nil {
		t.Errorf("delete of what is not there: %v", err)
	}
	for log, want := range map[string]string{
		"":        "",
		"nothing": "",
		`{"level":"error","msg":"one"}` + "\n" + `{"level":"warning","msg":"two"}` + "\n":              "one",
		`{"level":"error","msg":"one"}` + "\n" + `{"level":"fatal","msg":"two"}` + "\n{\"level\":\"er": "two",
	} {
		if got := lastError([]byte(log)); got != want {
			t.Errorf("last error of %q: %q, want %q", log, got, want)
		}
	}
}

func TestTerminalOfAProcess(t *testing.T) {
	for process, want := range map[string]string{
		`{}`:                              `{"terminal":true}`,
		`{"args":["a"],"terminal":false}`: `{"terminal":true,"args":["a"]}`,
	} {
		if got, err := withTerminal([]byte(process), true); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", process, got, err)
		}
	}
	if _, err := withTerminal([]byte(`{"args":`), true); err == nil {
		t.Error("half of an object was taken")
	}
}
