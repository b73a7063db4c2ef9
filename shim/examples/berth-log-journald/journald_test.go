package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/shim/reaper"
	"github.com/berth-runtime/berth/shim/stdio"
)

// fakeJournal is journald's socket; it gives each entry as text.
func fakeJournal(t *testing.T) (path string, next func() string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "j")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrUnix{Name: path})
	}
	if err == nil {
		err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 20})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return path, func() string {
		t.Helper()
		buf, control := make([]byte, 1<<20), make([]byte, 64)
		n, oob, _, _, err := unix.Recvmsg(fd, buf, control, unix.MSG_CMSG_CLOEXEC)
		for err == unix.EINTR {
			n, oob, _, _, err = unix.Recvmsg(fd, buf, control, unix.MSG_CMSG_CLOEXEC)
		}
		if err != nil {
			t.Fatal(err)
		}
		if oob == 0 {
			return string(buf[:n])
		}
		messages, err := unix.ParseSocketControlMessage(control[:oob])
		if err != nil {
			t.Fatal(err)
		}
		fds, err := unix.ParseUnixRights(&messages[0])
		if err != nil {
			t.Fatal(err)
		}
		f := os.NewFile(uintptr(fds[0]), "entry")
		defer f.Close()
		n, err = f.ReadAt(buf, 0)
		if n == 0 {
			t.Fatal(err)
		}
		return string(buf[:n])
	}
}

func TestFieldsWithLineEnds(t *testing.T) {
	got := string(appendField(appendField(nil, "A", "x=y"), "B", "1\n2"))
	if want := "A=x=y\nB\n\x03\x00\x00\x00\x00\x00\x00\x001\n2\n"; got != want {
		t.Fatalf("%q, want %q", got, want)
	}
}

func TestLongEntryGoesAsAFile(t *testing.T) {
	path, next := fakeJournal(t)
	j, err := dial(path)
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	long := strings.Repeat("x", 900<<10)
	if err := j.send(long, priorityInfo, nil); err != nil {
		t.Fatal(err)
	}
	if got := next(); got != "MESSAGE="+long+"\nPRIORITY=6\n" {
		t.Fatalf("%d bytes", len(got))
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]bool{"A": true, "UNIT_2": true, "": false, "_A": false, "2A": false, "a": false, "A-B": false, strings.Repeat("A", 65): false} {
		if validName(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
	if _, err := fieldsOf([]string{"unit"}); err == nil {
		t.Error("took a name without a value")
	}
}

// The whole way: the shim's stdio starts the program, and a process writes.
func TestThroughTheShim(t *testing.T) {
	journal, next := fakeJournal(t)
	dir := t.TempDir()
	program := filepath.Join(dir, "berth-log-journald")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// The protocol gives a program no environment of ours, so a script does.
	wrapper := filepath.Join(dir, "wrapper")
	script := "#!/bin/sh\nBERTH_JOURNAL_SOCKET=" + journal + " exec " + program + " \"$@\"\n"
	if err := os.WriteFile(wrapper, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	r, err := reaper.Start()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	s, err := stdio.Open(ctx, stdio.Config{ID: "c1", Namespace: "ns", Stdout: "binary-v2://" + wrapper + "?unit=web"}, r, func(text string) { t.Log(text) })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := r.Start("/bin/sh", []string{"sh", "-c", "echo hello; echo; printf 'no end'; exec >&-; sleep 0.2; echo oh >&2"},
		&syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, s.Child().Out.Fd(), s.Child().Err.Fd()}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Started(nil)
	const rest = "SYSLOG_IDENTIFIER=ns:c1\nCONTAINER_ID=c1\nCONTAINER_NAMESPACE=ns\nUNIT=web\n"
	for _, want := range []string{
		"MESSAGE=hello\nPRIORITY=6\n", "MESSAGE=\nPRIORITY=6\n", "MESSAGE=no end\nPRIORITY=6\n", "MESSAGE=oh\nPRIORITY=3\n",
	} {
		if got := next(); got != want+rest {
			t.Errorf("got %q, want %q", got, want+rest)
		}
	}
	c.Wait()
}
