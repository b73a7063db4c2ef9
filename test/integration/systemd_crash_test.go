package integration

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/test/harness"
)

// Killed before it tells others anything, be it a file or systemd, create leaves something that
// delete --force removes, or gc: state, processes, and the unit, which systemd may have made or
// not. Every message and every record is a write; strace kills whoever of the engine first comes to
// its Nth.
func TestUnitAfterKilledCreate(t *testing.T) {
	b := withSystemd(t)
	strace := harness.NeedTool(t, "strace", "strace")
	step := 1
	if testing.Short() {
		step = 3
	}
	killed := 0
	for n, whole := 1, false; !whole; n += step {
		if n > 500 {
			t.Fatalf("create still does not come to its end before write %d", n)
		}
		c, unit := unitContainer(b, "/bin/true")
		cmd := c.Command("create", []string{"--pid-file", b.Path("pid")})
		cmd.Wrap = []string{strace, "-D", "-f", "-qq", "-o", b.Path("trace"), "-e",
			fmt.Sprintf("inject=write,writev,sendto,sendmsg,renameat,renameat2:signal=KILL:when=%d", n)}
		r := cmd.Run()
		if n%2 == 0 && r.Code != 0 && b.Berth("state", c.ID).Code != 0 {
			wait.Until(t, "gc has removed the unit", func() bool {
				b.Berth("gc").OK(t) // it leaves what has a process still
				return property(t, unit, "LoadState") == "not-found"
			})
		}
		c.Command("delete", []string{"--force"}).Run().OK(t)
		b.ReapOrphans()
		gone(t, unit)
		if t.Failed() {
			t.Fatalf("killed before write %d", n)
		}
		if whole = r.Code == 0; !whole {
			killed++
		}
	}
	// The intent, the call to systemd, the record: less means that strace found nothing to kill. It
	// counts each thread's writes for themselves, so that there are more of them.
	if want := max(5/step, 1); killed < want {
		t.Errorf("create was killed %d times only", killed)
	}
}

// The bus is restarted while a container runs: what needs systemd after that finds it again.
func TestRootlessBusRestart(t *testing.T) {
	if os.Geteuid() == 0 {
		harness.Skip(t, "needs to be run by an ordinary user")
	}
	b := withSystemd(t)
	needV2(t)
	if _, err := trySystemctl("cat", "dbus.service"); err != nil {
		harness.Skip(t, "needs a bus that the user's systemd has started")
	}
	c, unit := unitContainer(b, "/inside", "hang")
	c.Spec.Linux.Resources.Pids = &specs.LinuxPids{Limit: ptr(int64(50))}
	c.RunDetached()
	systemctl(t, "restart", "dbus.service")
	c.Command("update", []string{"--pids-limit", "60"}).Run().OK(t)
	if got := property(t, unit, "TasksMax"); got != "60" {
		t.Errorf("TasksMax is %s", got)
	}
	// In the middle of others' starts, which is any instant.
	others := make([]*harness.Running, 4)
	containers := make([]*harness.Container, len(others))
	for i := range others {
		containers[i], _ = unitContainer(b, "/inside", "hang")
		others[i] = containers[i].Command("run", []string{"--detach", "--pid-file", b.Path(containers[i].ID + ".pid")}).Start()
	}
	systemctl(t, "restart", "dbus.service")
	for i, r := range others {
		if result := r.Wait(); result.Code != 0 {
			t.Errorf("run: %s", result.Stderr)
			continue
		}
		pid, err := strconv.Atoi(readFile(t, b.Path(containers[i].ID+".pid")))
		must(t, err)
		containers[i].PID = pid
	}
	for _, one := range append(containers, c) {
		one.Delete("--force")
		if one.PID != 0 {
			one.WaitExit()
		}
	}
	unitsGone(t, b)
}

// Without its bus a systemd is still reached, the user's as the system's, by the socket of its own.
func TestRootlessWithoutBus(t *testing.T) {
	b := withSystemd(t)
	run, bus := os.Getenv("XDG_RUNTIME_DIR"), "DBUS_SESSION_BUS_ADDRESS"
	if os.Geteuid() == 0 {
		run, bus = "/run", "DBUS_SYSTEM_BUS_ADDRESS"
	}
	if _, err := os.Stat(run + "/systemd/private"); err != nil {
		harness.Skip(t, "needs a systemd with a socket of its own: %v", err)
	}
	c, unit := unitContainer(b, "/inside", "hang")
	c.Env = []string{bus + "=unix:path=" + b.Path("no-bus")}
	c.RunDetached()
	if got := property(t, unit, "ActiveState"); got != "active" {
		t.Errorf("the unit is %s", got)
	}
	c.Kill("KILL").WaitExit()
	c.Delete()
	gone(t, unit)
}
