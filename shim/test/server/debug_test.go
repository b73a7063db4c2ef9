package server_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/internal/test/wait"
	"golang.org/x/sys/unix"
)

// ask gets a page from the debug socket of a bundle's shim.
func (n *node) ask(dir, path string) string {
	n.t.Helper()
	address, err := os.ReadFile(filepath.Join(dir, "debug-address"))
	n.must(err)
	conn, err := net.Dial("unix", strings.TrimPrefix(string(address), "unix://"))
	n.must(err)
	defer conn.Close()
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: shim\r\n\r\n", path)
	answer, err := io.ReadAll(conn)
	n.must(err)
	return string(answer)
}

func TestDebugSocketAndDump(t *testing.T) {
	n := newNode(t)
	n.flags = []string{"-debug"}
	b := n.run("c", "sleep", "1000")
	n.must(b.addExec("e", "true"))
	for _, test := range []struct {
		path string
		want []string
	}{
		{"/", []string{"HTTP/1.0 200", "heap in use", `container "c"`, "goroutine 1 ["}},
		{"/debug/tasks", []string{fmt.Sprintf("init: running, pid %d", b.pid), `exec "e": created`}},
		{"/debug/pprof/goroutine?debug=2", []string{"goroutine 1 [", "ttrpc"}},
		{"/nothing", []string{"HTTP/1.0 404"}},
	} {
		answer := n.ask(b.dir, test.path)
		for _, want := range test.want {
			if !strings.Contains(answer, want) {
				t.Errorf("%s: no %q in %q", test.path, want, answer)
			}
		}
	}
	n.must(unix.Kill(b.shim.pid, unix.SIGUSR1))
	wait.Until(n.t, "the dump in the log", func() bool {
		log := n.logged()
		return strings.Contains(log, `container "c"`) && strings.Contains(log, "goroutine 1 [")
	})
	if line, _, _ := strings.Cut(n.logged(), "\n"); !strings.HasPrefix(line, `time="`) || !strings.Contains(line, " level=info msg=") {
		t.Errorf("containerd cannot copy the line %q", line)
	}
	b.remove()
	b.gone() // with both sockets, which the end of the test looks for
}

// The dump waits for no reader of the log.
func TestDumpWithoutAReader(t *testing.T) {
	n := newNode(t)
	n.deaf = true
	b := n.run("c", "sleep", "1000")
	for range 5 {
		n.must(unix.Kill(b.shim.pid, unix.SIGUSR1))
	}
	b.remove()
	b.gone()
}

func TestDebugSocketOfAKilledShim(t *testing.T) {
	n := newNode(t)
	n.flags = []string{"-debug"}
	b := n.run("c", "sleep", "1000")
	n.must(unix.Kill(b.shim.pid, unix.SIGKILL))
	b.gone()
	n.cleanUp(b)
}
