package container

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/berth-runtime/berth/internal/json"
	"golang.org/x/sys/unix"
)

// denialsIn is a container with nothing but a directory.
func denialsIn(t *testing.T, dir string) *Container {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return &Container{dir: fd, runtime: &Runtime{}}
}

func TestDenialsAreKeptOnce(t *testing.T) {
	dir := t.TempDir()
	c := denialsIn(t, dir)
	if got := c.Denials(); got != nil {
		t.Errorf("before: %v", got)
	}
	w := c.WatchDenials()
	defer w.Close()
	one, err := c.keepDenials()
	if err != nil {
		t.Fatal(err)
	}
	two, err := c.keepDenials() // of another exec
	if err != nil {
		t.Fatal(err)
	}
	a := Denial{Call: "unshare(CLONE_NEWUSER)", Program: "a\nb\xff\"", Pid: 12, Errno: "EPERM", Rule: "/linux/seccomp/syscalls/7"}
	b := Denial{Call: "mount(0x1)", Errno: "EPERM", Rule: "/linux/seccomp/defaultAction"}
	one(&a)
	<-w.Changed
	if got := w.More(); len(got) != 1 || got[0].Call != a.Call || got[0].Pid != 12 {
		t.Errorf("told of %v", got)
	}
	two(&a)
	two(&b)
	if got := w.More(); len(got) != 2 {
		t.Errorf("told of %v", got)
	}
	want := a
	want.Program = "a\nb\uFFFD\"" // JSON has no other bytes
	if got := c.Denials(); !slices.Equal(got, []Denial{want, b}) {
		t.Errorf("got %q", got)
	}
	if w := c.WatchDenials(); w.More() != nil {
		t.Error("a watch tells of what was before it")
	} else {
		w.Close()
	}
}

// A killed command leaves half a line, and a stranger's hand anything: what can be read is read.
func TestDamagedDenials(t *testing.T) {
	dir := t.TempDir()
	c := denialsIn(t, dir)
	text := `{"call":"a","errno":"EPERM","rule":"/x"}` + "\nnonsense\n{}\n" + `{"call":"b","later":[1],"errno":"EPERM","rule":"/x"}` + "\n" + `{"call":"c","err`
	if err := os.WriteFile(filepath.Join(dir, deniedFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := c.Denials(); len(got) != 2 || got[0].Call != "a" || got[1].Call != "b" {
		t.Errorf("got %q", got)
	}
}

// The state directory is in memory, and what is denied is the payload's choice.
func TestDenialsHaveAnEnd(t *testing.T) {
	dir := t.TempDir()
	c := denialsIn(t, dir)
	keep, err := c.keepDenials()
	if err != nil {
		t.Fatal(err)
	}
	d := Denial{Call: strings.Repeat("x", 1000)}
	for range 2 * mostDenials / 1000 {
		keep(&d)
	}
	info, err := os.Stat(filepath.Join(dir, deniedFile))
	if err != nil || info.Size() < mostDenials || info.Size() > mostDenials+2000 {
		t.Errorf("%v, %v", info.Size(), err)
	}
}

// What a container's processes are called, and what they call, comes back as it was kept.
func FuzzDenials(f *testing.F) {
	f.Add("unshare(CLONE_NEWUSER)", "ba\"sh\n", 12, "EPERM", "/linux/seccomp", "{\"call\":\"x\"}")
	f.Fuzz(func(t *testing.T, call, program string, pid int, errno, rule, line string) {
		parseDenial([]byte(line))
		d := Denial{Call: call, Program: program, Pid: pid, Errno: errno, Rule: rule}
		if call == "" || program == "" || int(int32(pid)) != pid || !valid(call, program, errno, rule) {
			return
		}
		w := json.NewWriter(nil, "")
		d.JSON(w)
		if back, ok := parseDenial(w.Bytes()); !ok || back != d {
			t.Errorf("%+v became %+v, %t, by %s", d, back, ok, w.Bytes())
		}
	})
}

func valid(texts ...string) bool {
	return !slices.ContainsFunc(texts, func(s string) bool { return !utf8.ValidString(s) })
}
