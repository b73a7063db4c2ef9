package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { Main(m) }

// recorder is a test that keeps what is reported to it, and runs its clean-up when told to.
type recorder struct {
	testing.TB
	errors   []string
	cleanups []func()
}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}
func (r *recorder) Error(args ...any) { r.errors = append(r.errors, fmt.Sprint(args...)) }
func (r *recorder) Cleanup(f func())  { r.cleanups = append(r.cleanups, f) }

// leaks runs a test that leaves something, and returns what was reported.
func leaks(t *testing.T, leave func(b *Box)) []string {
	r := &recorder{TB: t}
	leave(New(r))
	for i := range r.cleanups {
		r.cleanups[len(r.cleanups)-1-i]()
	}
	return r.errors
}

func TestLeaksAreFound(t *testing.T) {
	t.Setenv("BERTH_BIN", "/bin/true")
	for _, test := range []struct {
		name  string
		leave func(b *Box)
		want  string
	}{
		{"nothing", func(b *Box) {}, ""},
		{"mount", func(b *Box) {
			b.must(unix.Mount("left", b.Dir, "tmpfs", 0, ""))
		}, "left behind: mount of left (tmpfs) on "},
		{"mount taken away", func(b *Box) {
			dir := t.TempDir()
			b.must(unix.Mount("mine", dir, "tmpfs", 0, ""))
			b.before = b.look()
			b.must(unix.Unmount(dir, 0))
		}, "taken away: mount of mine"},
		{"cgroup", func(b *Box) {
			b.must(os.Mkdir(filepath.Join(NeedV2(t), b.Tag), 0o755))
		}, "left behind: cgroup "},
		{"child", func(b *Box) {
			b.must(exec.Command("sleep", "1000").Start())
		}, "a child of the test in state "},
		{"zombie", func(b *Box) {
			cmd := exec.Command("true")
			b.must(cmd.Start())
			b.must(waitGone(cmd.Process.Pid, Deadline))
		}, "a child of the test in state Z"},
		{"process of the engine", func(b *Box) {
			cmd := exec.Command("/bin/sh", "-c", "sleep 1000 & exec true")
			cmd.Env = append(os.Environ(), mark+"="+b.Tag)
			b.must(cmd.Run())
		}, "started by the engine"},
		{"state", func(b *Box) { b.must(os.MkdirAll(b.Root+"/an-id", 0o755)) }, "left behind: "},
		{"temporary file", func(b *Box) { b.must(os.WriteFile(b.temp+"/x", nil, 0o600)) }, "left behind: "},
		{"descriptor", func(b *Box) {
			fd, err := unix.MemfdCreate("left", unix.MFD_CLOEXEC)
			b.must(err)
			t.Cleanup(func() { unix.Close(fd) })
		}, "left open: descriptor "},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := leaks(t, test.leave)
			if test.want == "" {
				if len(got) != 0 {
					t.Errorf("reported %q", got)
				}
				return
			}
			if !strings.Contains(strings.Join(got, "\n"), test.want) {
				t.Errorf("reported %q, want %q", got, test.want)
			}
			if again := leaks(t, func(*Box) {}); len(again) != 0 {
				t.Errorf("the next test still finds %q", again)
			}
		})
	}
}
