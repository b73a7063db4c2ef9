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

// box prepares a box whose current directory is the given one of the test's.
func box(b *harness.Box, dir string, args ...string) *harness.Command {
	c := b.Command(append([]string{"box"}, args...)...)
	c.Dir = b.Path(dir)
	return c
}

// The report of a box may go to a directory that the box writes to. What it puts in the report's
// place is not followed, nor waited for.
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

// The same for the trace of a call, which is only known when the call is over: by then nothing but
// a file of its own may be in its place.
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

// By sockets and pipes the machine's programs take orders: an agent of keys, a container engine, a
// terminal multiplexer. A mount that is read-only keeps nobody from them.
func TestSocketsInTheCurrentFolder(t *testing.T) {
	for name, test := range map[string]struct {
		above    string
		ordinary bool
	}{"a folder": {"/var/tmp", false}, "a folder of an ordinary user": {"/var/tmp", true}, "a folder of run": {"/run", false}, "tmp itself": {"/tmp", false}} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			b := harness.NewForAnyone(t)
			dir, err := os.MkdirTemp(test.above, "berth-test-")
			if err != nil {
				harness.Skip(t, "needs to make a folder in %s: %v", test.above, err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			makeTree(t, dir, map[string]string{"file": "the host's"}, []string{"out"})
			s := listen(t, dir)
			if test.ordinary {
				u := b.AsOrdinaryUser(t, 0)
				for _, name := range []string{"", "out", "file", "socket", "pipe"} {
					check(t, os.Chown(filepath.Join(dir, name), u.UID, u.UID))
				}
			}
			if test.above == "/var/tmp" {
				s.notReachedInOverlay(b)
				return
			}
			c := box(b, "", "--ro", harness.Helper(t)+":/opt/inside", "--", "/opt/inside", "try", "connect="+s.socket)
			if c.Dir = dir; test.above == "/tmp" {
				c.Dir = test.above
			}
			harness.Refused(t, harness.ParseAttempts(t, c.Run().OK(t).Stdout), "connect="+s.socket, "ENOENT")
			harness.Report(t, "attacks", 1)
		})
	}
}

// listener has a socket and a pipe in a directory of the host's.
type listener struct {
	dir, socket string
	pipe        int // what comes by it is read here
}

func listen(t *testing.T, dir string) *listener {
	t.Helper()
	s := &listener{dir: dir, socket: filepath.Join(dir, "socket")}
	l, err := net.Listen("unix", s.socket)
	check(t, err)
	t.Cleanup(func() { l.Close() })
	pipe := filepath.Join(dir, "pipe")
	check(t, unix.Mkfifo(pipe, 0o666))
	s.pipe, err = unix.Open(pipe, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	check(t, err)
	t.Cleanup(func() { unix.Close(s.pipe) })
	return s
}

// notReachedInOverlay tries both from boxes that begin in the directory, and what else the
// directory is to be in a box: read-only but for what is given to it.
func (s *listener) notReachedInOverlay(b *harness.Box) {
	t := b.T
	t.Helper()
	file, made := filepath.Join(s.dir, "file"), filepath.Join(s.dir, "out/new")
	for _, options := range [][]string{nil, {"--rw", "out"}} {
		options = append([]string{"--ro", harness.Helper(t) + ":/opt/inside"}, options...)
		c := box(b, "", append(options, "--", "/opt/inside", "try", "connect="+s.socket, "write="+file+",x", "read="+file, "create="+made)...)
		c.Dir = s.dir
		r := c.Run().OK(t)
		if strings.Contains(r.Stderr, "the kernel refuses an overlay of "+s.dir) {
			harness.Skip(t, "needs a kernel that makes an overlay here: %s", r.Stderr)
		}
		got := harness.ParseAttempts(t, r.Stdout)
		harness.Refused(t, got, "connect="+s.socket, "ECONNREFUSED")
		harness.Refused(t, got, "write="+file+",x", "EROFS")
		if text := got["read="+file].Result; text != "the host's" {
			t.Errorf("the file is %q", text)
		}
		if len(options) > 2 {
			harness.Allowed(t, got, "create="+made)
		} else {
			harness.Refused(t, got, "create="+made, "EROFS")
		}
		c = box(b, "", append(options, "--", "/bin/sh", "-c", "printf evil 1<>pipe")...)
		c.Dir = s.dir
		c.Run().OK(t)
		if n, err := unix.Read(s.pipe, make([]byte, 16)); err != unix.EAGAIN {
			t.Errorf("by the pipe came %d bytes, %v", n, err)
		}
		harness.Report(t, "attacks", 2)
	}
}
