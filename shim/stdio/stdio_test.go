package stdio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/berth-runtime/berth/internal/test/wait"
	"golang.org/x/sys/unix"
)

func TestLastBytesOfAFastProcess(t *testing.T) {
	want := strings.Repeat("0123456789", 10000) // more than a pipe holds
	for range 20 {
		path := fifo(t, "out")
		got := reader(t, path)
		s := mustOpen(t, Config{Stdout: path})
		run(t, s, `i=0; while [ $i -lt 10 ]; do printf %s "`+want[:10000]+`"; i=$((i+1)); done`).Wait()
		s.Drain()
		s.Close()
		if out := <-got; out != want {
			t.Fatalf("%d bytes of %d", len(out), len(want))
		}
	}
}

// The client opens its end only after the shim has begun to open its own.
func TestLateReader(t *testing.T) {
	path := fifo(t, "out")
	got := make(chan (<-chan string), 1)
	time.AfterFunc(50*time.Millisecond, func() { got <- reader(t, path) })
	s := mustOpen(t, Config{Stdout: path})
	run(t, s, "echo late").Wait()
	s.Drain()
	if out := <-<-got; out != "late\n" {
		t.Fatalf("got %q", out)
	}
}

func TestNoReaderEverIsAnError(t *testing.T) {
	path := fifo(t, "out")
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := Open(ctx, Config{Stdout: path}, theReaper(t), func(string) {}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
}

// A reader that does not read holds up its own stream, and no drain for ever.
func TestStuckReaderBlocksNobodyElse(t *testing.T) {
	stuck, path := fifo(t, "stuck"), fifo(t, "out")
	hold, err := os.OpenFile(stuck, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	read, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	s := mustOpen(t, Config{Stdout: path, Stderr: stuck})
	c := run(t, s, "(head -c 300000 /dev/zero >&2) & echo free; wait")
	buf := make([]byte, 100)
	if n, err := read.Read(buf); err != nil || string(buf[:n]) != "free\n" {
		t.Fatalf("got %q, %v", buf[:n], err)
	}
	if err := c.Signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.Wait()
	s.Drain() // or the test times out
}

// A client that goes away, and one that comes back, as over a restart.
func TestReaderThatVanishesAndComesBack(t *testing.T) {
	path := fifo(t, "out")
	first := make(chan *os.File)
	go func() {
		f, err := os.Open(path)
		if err != nil {
			t.Error(err)
		}
		first <- f
	}()
	s := mustOpen(t, Config{Stdin: fifo(t, "in"), Stdout: path})
	in, err := os.OpenFile(s.config.Stdin, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := run(t, s, "echo one; read x; echo two; read x; echo three")
	f := <-first
	buf := make([]byte, 100)
	n, err := f.Read(buf)
	if err != nil || string(buf[:n]) != "one\n" {
		t.Fatalf("%q, %v", buf[:n], err)
	}
	f.Close()
	io.WriteString(in, "x\n")
	// It is open before the process can end: an output that nobody has open is gone then.
	again, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	io.WriteString(in, "x\n")
	if e := c.Wait(); e.Status != 0 {
		t.Fatalf("status %d", e.Status)
	}
	s.Drain()
	if out, err := io.ReadAll(again); err != nil || string(out) != "two\nthree\n" {
		t.Fatalf("got %q, %v", out, err)
	}
	in.Close()
}

func TestStdinEndsWithCloseStdin(t *testing.T) {
	in, out := fifo(t, "in"), fifo(t, "out")
	got := reader(t, out)
	s := mustOpen(t, Config{Stdin: in, Stdout: out})
	w, err := os.OpenFile(in, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := run(t, s, "cat; echo end")
	io.WriteString(w, "input\n")
	s.CloseStdin() // the client's own end is still open
	io.WriteString(w, "more\n")
	w.Close()
	c.Wait()
	s.Drain()
	if text := <-got; text != "input\nmore\nend\n" {
		t.Fatalf("got %q", text)
	}
}

func TestSameFIFOForBothKeepsTheOrder(t *testing.T) {
	out := fifo(t, "out")
	got := reader(t, out)
	s := mustOpen(t, Config{Stdout: out, Stderr: out})
	run(t, s, "for i in 1 2 3 4; do echo o$i; echo e$i >&2; done").Wait()
	s.Drain()
	if text := <-got; text != "o1\ne1\no2\ne2\no3\ne3\no4\ne4\n" {
		t.Fatalf("got %q", text)
	}
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new/folder/a b")
	uri := "file://" + strings.ReplaceAll(path, " ", "%20")
	for range 2 { // appended to
		s := mustOpen(t, Config{Stdout: uri, Stderr: uri})
		run(t, s, "echo out; echo err >&2").Wait()
		s.Drain()
		s.Close()
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "out\nerr\nout\nerr\n" {
		t.Fatalf("%q, %v", b, err)
	}
}

// A disk that is full costs the output and nothing else.
func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a small file system needs root")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=16k"); err != nil {
		t.Skipf("cannot mount a tmpfs: %v", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	s := mustOpen(t, Config{Stdout: "file://" + dir + "/log"})
	if e := run(t, s, "head -c 500000 /dev/zero; exit 6").Wait(); e.Status != 6 {
		t.Fatalf("status %d", e.Status)
	}
	s.Drain()
}

func TestLoggingProgram(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "logger")
	script := func(ready string) {
		t.Helper()
		text := "#!/bin/sh\nexec >" + dir + "/log\nprintf '%s|' \"$CONTAINER_ID\" \"$CONTAINER_NAMESPACE\" \"$@\"\n" +
			"env | grep -v -E '^(PWD|SHLVL|_|CONTAINER)' | tr -d '\\n'\n" + ready + "\ncat <&3; cat <&4\n"
		if err := os.WriteFile(program, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		uri, ready string
		works      bool
	}{
		"closes":                {"binary://" + program + "?a=1&b=x+y&c=%2F", "exec 5>&-", true},
		"writes":                {"binary://" + program + "?a=1&b=x+y&c=%2F", "printf . >&5; exec 5>&-", true},
		"version 2, writes":     {"binary-v2://" + program + "?a=1&b=x+y&c=%2F", "printf . >&5", true},
		"version 2, closes":     {"binary-v2://" + program, "exec 5>&-", false},
		"ends before":           {"binary-v2://" + program, "exit 1", false},
		"is not there":          {"binary:///nonexistent/berth-logger", "", false},
		"is not executable":     {"binary:///etc/passwd", "", false},
		"is not a logger's URI": {"binary://relative", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			script(tc.ready)
			s, err := open(t, Config{ID: "id", Namespace: "ns", Stdout: tc.uri})
			if !tc.works {
				if err == nil {
					s.Close()
					t.Fatal("opened")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			run(t, s, "echo out; echo err >&2").Wait()
			s.Drain()
			s.Close()
			<-s.logger.process.Done() // by itself, at the end of its input
			got, err := os.ReadFile(dir + "/log")
			if want := "id|ns|a|1|b|x y|c|/|out\nerr\n"; err != nil || string(got) != want {
				t.Fatalf("got %q, want %q", got, want)
			}
		})
	}
}

func TestParse(t *testing.T) {
	for uri, want := range map[string]string{
		"/run/fifo":            "fifo /run/fifo []",
		"fifo:///run/f":        "fifo /run/f []",
		"file:///a%20b%C3%A9":  "file /a bé []",
		"binary:///b?x=1&y":    "binary /b [[x 1] [y ]]",
		"binary-v2:///b?z=%3D": "binary-v2 /b [[z =]]",
		"file:///a+b":          "file /a+b []",
	} {
		p, err := parse(uri)
		if got := fmt.Sprint(p.scheme, " ", p.path, " ", p.query); err != nil || got != want {
			t.Errorf("%s: %s, %v", uri, got, err)
		}
	}
	for _, uri := range []string{"http://x", "file://relative", "file:///%zz", "file:///%2", "binary://?x"} {
		if _, err := parse(uri); err == nil {
			t.Errorf("%s was taken", uri)
		}
	}
}

// Nothing stays open, whether or not a process came.
func TestDescriptorsAreClosed(t *testing.T) {
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	use := func(start bool) {
		out, errs := fifo(t, "out"), fifo(t, "err")
		o, e := reader(t, out), reader(t, errs)
		s, err := open(t, Config{Stdin: fifo(t, "in"), Stdout: out, Stderr: errs, UID: os.Getuid(), GID: os.Getgid()})
		if err != nil {
			t.Fatal(err)
		}
		if start {
			run(t, s, "echo x").Wait()
			s.Drain()
		}
		s.Close()
		<-o
		<-e
	}
	use(true)
	before := count()
	for i := range 10 {
		use(i%2 == 0)
	}
	// The copies end by themselves.
	wait.Until(t, fmt.Sprintf("no more than %d descriptors", before), func() bool { return count() <= before })
}

// A client that gives up takes the FIFO away; the thread that waits in open(2) for it ends all the same.
func TestFIFOIsRemovedMeanwhile(t *testing.T) {
	out := fifo(t, "out")
	ctx, cancel := context.WithCancel(context.Background())
	opened := make(chan error)
	go func() {
		_, err := Open(ctx, Config{Stdout: out}, theReaper(t), func(string) {})
		opened <- err
	}()
	waiting := func() bool {
		buf := make([]byte, 1<<20)
		return strings.Contains(string(buf[:runtime.Stack(buf, true)]), "awaitReader.func")
	}
	becomes := func(want bool) {
		t.Helper()
		wait.Until(t, fmt.Sprintf("a thread waits for a reader: %t", want), func() bool { return waiting() == want })
	}
	becomes(true)
	if err := os.Remove(out); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-opened; !errors.Is(err, context.Canceled) {
		t.Errorf("open: %v", err)
	}
	becomes(false)
}

func FuzzParse(f *testing.F) {
	for _, uri := range []string{"binary:///b?x=%20&y=+", "/run/fifo", "file:///a%c3%A9", "stream:///run/s?streaming_id=x", "file:///%zz", "file:///%2", "binary://b", "http://x"} {
		f.Add(uri)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		p, err := parse(uri)
		if err == nil && p.scheme != schemeFIFO && !strings.HasPrefix(p.path, "/") {
			t.Fatalf("%q: %+v", uri, p)
		}
	})
}
