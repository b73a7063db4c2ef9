package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
	"golang.org/x/sys/unix"
)

// Killed at any instant, create leaves either something that gc removes, or a container that can be
// asked for and deleted.
func TestGCAfterKilledCreate(t *testing.T) {
	strace := harness.NeedTool(t, "strace", "strace")
	const step = 31
	for n, whole := step, false; !whole && n < 5000; n += step {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			b := harness.New(t)
			c := b.Container("/bin/true")
			cmd := c.Command("create", nil)
			// With -D the engine is this process's child, and strace a process beside it.
			cmd.Wrap = []string{strace, "-D", "-f", "-qq", "-o", b.Path("trace"), "-e", fmt.Sprintf("inject=all:signal=KILL:when=%d", n)}
			r := cmd.Run()
			waitUnlocked(t, filepath.Join(b.Root, c.ID))
			dry := b.Berth("gc", "--dry-run").OK(t)
			real := b.Berth("gc").OK(t)
			if strings.ReplaceAll(dry.Stdout, "would remove", "removing") != real.Stdout {
				t.Errorf("announced %q, done %q", dry.Stdout, real.Stdout)
			}
			if again := b.Berth("gc").OK(t); again.Stdout != "" {
				t.Errorf("a second gc finds %q", again.Stdout)
			}
			_, err := os.Stat(filepath.Join(b.Root, c.ID))
			if real.Stdout != "" && err == nil {
				t.Error("the state folder is still there")
			}
			if err == nil {
				c.State()
				c.Delete("--force")
			}
			b.ReapOrphans()
			whole = t.Failed() || r.Code == 0
		})
	}
}

// waitUnlocked waits until nobody has a container's lock any more: a killed
// maker's child has it with it until its execve, which strace makes last.
func waitUnlocked(t *testing.T, folder string) {
	t.Helper()
	fd, err := unix.Open(folder, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == unix.ENOENT {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Flock(fd, unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Whatever state a container is in, if it was made it is left alone.
func TestGCLeavesContainers(t *testing.T) {
	b := harness.New(t)
	containers := map[string]*harness.Container{
		"created": b.Container("/bin/true").Create(),
		"running": b.Container("/inside", "hang").RunDetached(),
		"paused":  b.Container("/inside", "hang").RunDetached(),
		"stopped": b.Container("/bin/true").RunDetached(),
	}
	containers["paused"].Command("pause", nil).Run().OK(t)
	containers["stopped"].WaitExit()
	before := b.Berth("list").OK(t).Stdout
	for _, flags := range [][]string{{"gc", "--dry-run"}, {"gc"}} {
		if r := b.Berth(flags...).OK(t); r.Stdout != "" || r.Stderr != "" {
			t.Errorf("%q says %q, %q", flags, r.Stdout, r.Stderr)
		}
	}
	if after := b.Berth("list").OK(t).Stdout; after != before {
		t.Errorf("list before:\n%safter:\n%s", before, after)
	}
	for status, c := range containers {
		if s := c.State(); string(s.Status) != status {
			t.Errorf("%s is %s", status, s.Status)
		}
	}
	containers["created"].Start().WaitExit()
	containers["paused"].Command("resume", nil).Run().OK(t)
}

// Containers may come and go while the garbage is collected.
func TestGCBesideOthers(t *testing.T) {
	b := harness.New(t)
	var running []*harness.Running
	for range 6 {
		running = append(running, b.Container("/bin/true").Command("run", nil).Start())
		running = append(running, b.Command("gc").Start())
	}
	for _, r := range running {
		if got := r.Wait(); got.Code != 0 || got.Stdout != "" {
			t.Errorf("%q: status %d, %q, %q", got.Args, got.Code, got.Stdout, got.Stderr)
		}
	}
}

func TestGCWithoutContainers(t *testing.T) {
	b := harness.New(t)
	if r := b.Berth("gc").OK(t); r.Stdout != "" {
		t.Errorf("%q", r.Stdout)
	}
	b.Berth("gc", "surplus").Exits(t, 1)
}
