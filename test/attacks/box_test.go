package attacks

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

// box prepares a box whose current folder is the given one of the test's.
func box(b *harness.Box, dir string, args ...string) *harness.Command {
	c := b.Command(append([]string{"box"}, args...)...)
	c.Dir = b.Path(dir)
	return c
}

// The report of a box may go to a folder that the box writes to. What it puts in the report's place is not followed, nor waited for.
func TestReportIsExchangedByTheBox(t *testing.T) {
	for name, put := range map[string]string{
		"link": "ln -sf ../outside/file use", "link to a folder": "ln -sf ../outside use", "fifo": "mkfifo use", "folder": "mkdir use",
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			b := harness.NewForAnyone(t)
			o := newOutside(b, map[string]string{"file": "the host's"})
			makeTree(t, b.Path("work"), map[string]string{"use": "an old report"}, nil)
			box(b, "work", "--rw", ".", "--report", "json:use", "--", "/bin/sh", "-c", "ln use kept && rm use && "+put).Run().OK(t)
			o.untouched()
			if text, err := os.ReadFile(filepath.Join(b.Path("work"), "kept")); err != nil || !strings.HasPrefix(string(text), `{"id":`) || !strings.HasSuffix(string(text), "}\n") {
				t.Errorf("the report is %q, %v", text, err)
			}
			harness.Report(t, "attacks", 1)
		})
	}
}

// The same for the trace of a call, which is only known when the call is over: by then nothing but a file of its own may be in its place.
func TestTraceIsExchangedByTheBox(t *testing.T) {
	for name, put := range map[string]string{"link": "ln -sf ../outside/file trace.json", "fifo": "mkfifo trace.json"} {
		b := harness.NewForAnyone(t)
		o := newOutside(b, map[string]string{"file": "the host's"})
		makeTree(t, b.Path("work"), nil, nil)
		b.Globals = append(b.Globals, "--trace", filepath.Join(b.Path("work"), "trace.json"))
		if r := box(b, "work", "--rw", ".", "--", "/bin/sh", "-c", put).Run(); !strings.Contains(r.Stderr, "--trace") {
			t.Errorf("%s: nothing is said of the trace: %+v", name, r)
		}
		o.untouched()
		harness.Report(t, "attacks", 1)
	}
}

// By sockets and pipes the machine's programs take orders: an agent of keys, a container engine, a terminal multiplexer. A mount that is
// read-only keeps nobody from them.
func TestSocketsInTheCurrentFolder(t *testing.T) {
	places := map[string]string{"a folder": "/var/tmp", "a folder of /run": "/run", "/tmp": "/tmp"}
	for name, above := range places {
		t.Run(strings.ReplaceAll(name, "/", "-"), func(t *testing.T) {
			b := harness.NewForAnyone(t)
			dir, err := os.MkdirTemp(above, "berth-test-")
			if err != nil {
				harness.Skip(t, "needs to make a folder in %s: %v", above, err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			makeTree(t, dir, map[string]string{"file": "the host's"}, []string{"out"})
			socket, pipe := filepath.Join(dir, "socket"), filepath.Join(dir, "pipe")
			l, err := net.Listen("unix", socket)
			check(t, err)
			defer l.Close()
			check(t, unix.Mkfifo(pipe, 0o666))
			reader, err := unix.Open(pipe, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
			check(t, err)
			defer unix.Close(reader)
			for _, options := range [][]string{nil, {"--rw", "out"}} {
				if above != "/var/tmp" {
					options = nil
				}
				c := b.Command(append(append([]string{"box", "--ro", harness.Helper(t) + ":/opt/inside"}, options...),
					"--", "/opt/inside", "try", "connect="+socket, "write="+filepath.Join(dir, "file")+",x", "read="+filepath.Join(dir, "file"), "create="+filepath.Join(dir, "out/new"))...)
				if c.Dir = dir; above == "/tmp" {
					c.Dir = above
				}
				got := harness.ParseAttempts(t, c.Run().OK(t).Stdout)
				if above != "/var/tmp" {
					harness.Refused(t, got, "connect="+socket, "ENOENT")
					continue
				}
				harness.Refused(t, got, "connect="+socket, "ECONNREFUSED")
				harness.Refused(t, got, "write="+filepath.Join(dir, "file")+",x", "EROFS")
				if text := got["read="+filepath.Join(dir, "file")].Result; text != "the host's" {
					t.Errorf("the file is %q", text)
				}
				if options != nil {
					harness.Allowed(t, got, "create="+filepath.Join(dir, "out/new"))
				} else {
					harness.Refused(t, got, "create="+filepath.Join(dir, "out/new"), "EROFS")
				}
				c = b.Command(append(append([]string{"box"}, options...), "--", "/bin/sh", "-c", "printf evil 1<>pipe")...)
				c.Dir = dir
				c.Run().OK(t)
				if n, err := unix.Read(reader, make([]byte, 16)); err != unix.EAGAIN {
					t.Errorf("by the pipe came %d bytes, %v", n, err)
				}
			}
			harness.Report(t, "attacks", 2)
		})
	}
}
