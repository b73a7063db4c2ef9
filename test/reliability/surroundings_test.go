package reliability

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

// stateOn puts the state root on a small file system of its own.
func stateOn(t *testing.T, b *harness.Box, options string) {
	t.Helper()
	if err := os.MkdirAll(b.Root, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", b.Root, "tmpfs", 0, "mode=700,"+options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(b.Root, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

func emptyState(t *testing.T, b *harness.Box, about string) {
	t.Helper()
	entries, err := os.ReadDir(b.Root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "ballast" && e.Name() != harness.RootMark {
			t.Errorf("%s: left behind: %s", about, e.Name())
		}
	}
	if left := b.Cgroups(); len(left) > 0 {
		t.Errorf("%s: left behind: %v", about, left)
	}
}

// The disk that the state is on is full from some point on.
func TestFullDisk(t *testing.T) {
	b := harness.New(t)
	stateOn(t, b, "size=64k")
	c := b.Container("/bin/true")
	made, refused := 0, 0
	for free := 0; free <= 64<<10; free += 4096 {
		about := fmt.Sprintf("%d bytes free", free)
		ballast := filepath.Join(b.Root, "ballast")
		if err := os.WriteFile(ballast, make([]byte, 64<<10-free), 0o600); err != nil {
			t.Fatal(err)
		}
		if r := c.TryCreate(); r.Code == 0 {
			made++
			// To delete takes no space.
			c.Delete("--force")
			c.WaitExit()
		} else {
			refused++
			r.Fails(t, "no space left on device")
		}
		emptyState(t, b, about)
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
	}
	if made == 0 || refused == 0 {
		t.Errorf("%d made, %d refused", made, refused)
	}
	harness.Report(t, "surroundings", made+refused)
}

// The state becomes read-only, as file systems do on errors: what is running can be looked at and
// stopped, nothing is half done, and all is well when it can be written to again.
func TestReadOnlyState(t *testing.T) {
	b := harness.New(t)
	stateOn(t, b, "size=1m")
	c, other := b.Container("/inside", "hang"), b.Container("/bin/true")
	c.RunDetached()
	remount := func(flags uintptr) {
		t.Helper()
		if err := unix.Mount("", b.Root, "", unix.MS_REMOUNT|flags, ""); err != nil {
			t.Fatal(err)
		}
	}
	remount(unix.MS_RDONLY)
	other.TryCreate().Fails(t, "read-only file system")
	if s := c.State(); s.Status != "running" {
		t.Errorf("it is %s", s.Status)
	}
	b.Berth("list").OK(t)
	c.Exec(nil, "/bin/true").OK(t)
	c.Kill("KILL")
	c.WaitExit()
	if s := c.State(); s.Status != "stopped" {
		t.Errorf("it is %s", s.Status)
	}
	remount(0)
	c.Delete()
	emptyState(t, b, "writable again")
	harness.Report(t, "surroundings", 1)
}

// The memory limit is reached at some moment of the making: it is made, or said why not, and
// nothing is left.
func TestMemoryLimitDuringCreate(t *testing.T) {
	harness.Controller(t, "memory")
	b := harness.New(t)
	c := b.Container("/bin/true")
	made, refused := 0, 0
	for limit := int64(4096); limit <= 4<<20; limit *= 2 {
		c.Spec.Linux.Resources.Memory = &specs.LinuxMemory{Limit: &limit}
		about := fmt.Sprintf("a limit of %d bytes", limit)
		if r := c.TryCreate(); r.Code == 0 {
			made++
			c.Delete("--force")
			c.WaitExit()
		} else {
			refused++
			r.Fails(t)
		}
		emptyState(t, b, about)
	}
	if made == 0 {
		t.Errorf("no limit was enough")
	}
	harness.Report(t, "surroundings", made+refused)
}

// No process fits in any more when one is added.
func TestPidsLimitDuringExec(t *testing.T) {
	harness.Controller(t, "pids")
	b := harness.New(t)
	c := b.Container("/bin/sh", "-c", "read x")
	hold, stdin, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	defer stdin.Close()
	c.Stdin = hold
	one := int64(1)
	c.Spec.Linux.Resources.Pids = &specs.LinuxPids{Limit: &one}
	c.RunDetached()
	for range 3 {
		r := c.Exec(nil, "/bin/true").FailsWith(t, 255)
		if !strings.Contains(r.Message(), "pids.max") && !strings.Contains(r.Message(), "resource temporarily unavailable") {
			t.Errorf("the error does not say why: %s", r.Message())
		}
	}
	if s := c.State(); s.Status != "running" {
		t.Errorf("it is %s", s.Status)
	}
	c.Command("update", []string{"--pids-limit", "10"}).Run().OK(t)
	c.Exec(nil, "/bin/true").OK(t)
	c.Delete("--force")
	c.WaitExit()
	harness.Report(t, "surroundings", 4)
}

// Another process makes and removes the very cgroup while the container is made.
func TestCgroupMadeInBetween(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true")
	var dirs []string
	for _, h := range harness.Hierarchies(t) {
		dirs = append(dirs, filepath.Join(h.Dir, c.Spec.Linux.CgroupsPath))
	}
	stop := make(chan struct{})
	var other sync.WaitGroup
	other.Add(1)
	go func() {
		defer other.Done()
		for {
			for _, dir := range dirs {
				select {
				case <-stop:
					return
				default:
					if unix.Mkdir(dir, 0o755) == nil {
						_ = unix.Rmdir(dir)
					}
				}
			}
		}
	}()
	made, refused := 0, 0
	for range 15 {
		if r := c.TryCreate(); r.Code == 0 {
			made++
			c.Command("delete", []string{"--force"}).Run().OK(t)
			c.WaitExit()
		} else {
			refused++
			r.Fails(t)
		}
	}
	close(stop)
	other.Wait()
	for _, dir := range dirs {
		// It may be the other's last one, which this end has come before the removal of.
		_ = unix.Rmdir(dir)
	}
	emptyState(t, b, "the cgroup of others")
	t.Logf("%d made, %d refused", made, refused)
	harness.Report(t, "surroundings", made+refused)
}

// The clock jumps: the only thing that is kept by it is when a container was made, and nothing is
// decided by that. Ages and timeouts go by the monotonic clock, processes are known by ticks since
// boot.
func TestClockJumps(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "hang").RunDetached()
	file := filepath.Join(b.Root, c.ID, "state.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), `"created":"`)
	now, _, _ := strings.Cut(rest, `"`)
	for _, then := range []string{"1970-01-01T00:00:00Z", "2099-12-31T23:59:59.999999999Z"} {
		if err := os.WriteFile(file, []byte(strings.Replace(string(text), now, then, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if s := c.State(); s.Status != "running" || s.Created != then {
			t.Errorf("it is %s, made %s", s.Status, s.Created)
		}
		b.Berth("list").OK(t)
		if r := b.Berth("gc").OK(t); r.Stdout != "" {
			t.Errorf("gc says %q", r.Stdout)
		}
		c.Exec(nil, "/bin/true").OK(t)
	}
	c.Delete("--force")
	c.WaitExit()
	harness.Report(t, "surroundings", 2)
}

// The clock itself is set, years back and years on, while containers are made, entered and removed.
// Only where the machine is the test's own: in a guest, whose runner says so.
func TestClockIsSet(t *testing.T) {
	if os.Getenv("BERTH_GUEST") == "" {
		harness.Skip(t, "sets the machine's clock: only in a guest of test/guests")
	}
	if os.Geteuid() != 0 {
		harness.Skip(t, "needs root")
	}
	b := harness.New(t)
	since, right := monotonic(t), clock(t, unix.CLOCK_REALTIME)
	set := func(year int64) {
		t.Helper()
		at := unix.NsecToTimespec((year - 1970) * 31_556_952e9)
		if err := unix.ClockSettime(unix.CLOCK_REALTIME, &at); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		at := unix.NsecToTimespec(right + monotonic(t) - since)
		if err := unix.ClockSettime(unix.CLOCK_REALTIME, &at); err != nil {
			t.Error(err)
		}
	})
	long := b.Container("/inside", "hang").RunDetached()
	other := b.Container("/inside", "hang")
	for year, later := range map[int64]int64{1971: 2011, 2100: 2060, 2026: 2066, 2001: 1975, 2090: 2091} {
		other.Create()
		set(year)
		other.Start()
		for _, c := range []*harness.Container{long, other} {
			if s := c.State(); s.Status != "running" {
				t.Errorf("in %d container %s is %s", year, c.ID, s.Status)
			}
			c.Exec(nil, "/bin/true").OK(t)
			c.Command("pause", nil).Run().OK(t)
			c.Command("resume", nil).Run().OK(t)
			c.Command("events", []string{"--stats"}).Run().OK(t)
		}
		if got := len(b.Berth("list", "-q").OK(t).Lines()); got != 2 {
			t.Errorf("in %d list has %d", year, got)
		}
		if r := b.Berth("gc").OK(t); r.Stdout != "" {
			t.Errorf("in %d gc says %q", year, r.Stdout)
		}
		set(later)
		other.Kill("KILL")
		other.WaitExit()
		other.Delete()
		b.Container("/bin/true").Run().OK(t)
	}
	// It does not stand still for as long as a container is made, either.
	var stop, jumps atomic.Int64
	ended := make(chan error)
	go func() {
		for stop.Load() == 0 {
			at := unix.NsecToTimespec((1_000_000_000 + jumps.Add(1)%2*1_000_000_000) * 1e9)
			if err := unix.ClockSettime(unix.CLOCK_REALTIME, &at); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	for range 10 {
		b.Container("/bin/true").Run().OK(t)
	}
	stop.Store(1)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	long.Delete("--force")
	long.WaitExit()
	emptyState(t, b, "the clock was set")
	t.Logf("the clock was set %d times", jumps.Load()+10)
}

func monotonic(t *testing.T) int64 { return clock(t, unix.CLOCK_MONOTONIC) }

func clock(t *testing.T, id int32) int64 {
	t.Helper()
	var at unix.Timespec
	if err := unix.ClockGettime(id, &at); err != nil {
		t.Fatal(err)
	}
	return at.Nano()
}
