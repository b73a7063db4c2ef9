package integration

import (
	"os"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/test/harness"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// A client may restore into a root file system made anew from the image, which has none of
// the places that mounts had been given in the old one.
func TestRestoreMakesTheTargetsOfMounts(t *testing.T) {
	b := withCriu(t)
	c := counter(b)
	c.Spec.Root.Readonly = false
	b.WriteFile("source", "from the host\n", 0o644)
	if err := os.MkdirAll(b.Path("data/inner"), 0o755); err != nil {
		t.Fatal(err)
	}
	bind := func(destination, source string) specs.Mount {
		return specs.Mount{Destination: destination, Type: "bind", Source: b.Path(source), Options: []string{"rbind"}}
	}
	c.Spec.Mounts = append(c.Spec.Mounts, bind("/etc/new/hosts", "source"), bind("/srv/data", "data"), bind("/srv/data/inner/file", "source"),
		specs.Mount{Destination: "/scratch/deep", Type: "tmpfs", Source: "tmpfs"}, bind("/scratch/deep/file", "source"))
	p := counting(t, c)
	image := b.Path("image")
	c.Command("checkpoint", []string{"--image-path", image}).Run().OK(t)
	c.WaitExit()
	for _, name := range []string{c.Path("etc/new"), c.Path("srv"), c.Path("scratch"), b.Path("data/inner/file")} {
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
	}
	restore(c, "--image-path", image).OK(t)
	p.expect("two", "two 2")
	for _, file := range []string{"/etc/new/hosts", "/srv/data/inner/file", "/scratch/deep/file"} {
		if got := c.Exec(nil, "/bin/cat", file).OK(t).Stdout; got != "from the host\n" {
			t.Errorf("%s has %q", file, got)
		}
	}
	c.Delete("--force")
}

func TestRestoreWithTerminal(t *testing.T) {
	b := withCriu(t)
	c := b.Container("/bin/sh", "-c", "n=0; while read word; do n=$((n+1)); echo $word-$n; done")
	c.Spec.Process.Terminal = true
	s := b.FDSocket("console.sock")
	c.RunDetached("--console-socket", s.Path)
	terminal := s.ReceiveTerminal()
	terminal.Write("one\n")
	terminal.Until("one-1")
	c.Command("checkpoint", []string{"--image-path", b.Path("image")}).Run().OK(t)
	c.WaitExit()

	again := b.FDSocket("again.sock")
	restore(c, "--image-path", b.Path("image"), "--console-socket", again.Path).OK(t)
	terminal = again.ReceiveTerminal()
	terminal.Write("two\n")
	terminal.Until("two-2")
	c.Delete("--force")
}

func TestRestoreInTheForeground(t *testing.T) {
	b := withCriu(t)
	c := counter(b)
	p := counting(t, c)
	c.Command("checkpoint", []string{"--image-path", b.Path("image")}).Run().OK(t)
	c.WaitExit()
	cmd := c.Command("restore", []string{"--image-path", b.Path("image")})
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.from, p.to, p.to
	running := cmd.Start()
	p.expect("two", "two 2")
	p.in.Close()
	p.from.Close()
	running.Wait().Exits(t, 7)
	c.Command("state", nil).Run().Fails(t, "container does not exist")
}

// A container comes back in the cgroup that its config names now, with the limits that are there,
// and its old one is gone.
func TestRestoreIntoAnotherCgroup(t *testing.T) {
	b := withCriu(t)
	harness.Controller(t, "pids")
	c := counter(b)
	c.Spec.Linux.Resources.Pids = &specs.LinuxPids{Limit: ptr(int64(50))}
	counting(t, c)
	image := b.Path("image")
	c.Command("checkpoint", []string{"--image-path", image}).Run().OK(t)
	c.WaitExit()

	c.Spec.Linux.CgroupsPath = "/" + b.Tag + "-moved/inner"
	c.Spec.Linux.Resources.Pids.Limit = ptr(int64(20))
	second := newPipes(t)
	second.give(c)
	restore(c, "--image-path", image).OK(t)
	second.expect("two", "two 2")
	for line := range strings.Lines(readFile(t, procPath(c.PID, "cgroup"))) {
		if !strings.HasSuffix(strings.TrimSpace(line), c.Spec.Linux.CgroupsPath) {
			t.Errorf("the restored process is in %s", line)
		}
	}
	holds(t, c, "pids", "pids.max", "pids.max", "20", "20")
	second.in.Close()
	c.WaitExit()
	c.Delete()
}

// A container comes back as a unit, with the limits that its config has now: where that is said,
// and where systemd is the init system.
func TestRestoreAsUnit(t *testing.T) {
	t.Run("by the option", func(t *testing.T) {
		b := withCriu(t)
		b.Globals = append(b.Globals, "--systemd-cgroup")
		restoreAsUnit(t, b)
	})
	t.Run("by default", func(t *testing.T) {
		b := withCriu(t)
		if _, err := os.Stat("/run/systemd/system"); err != nil {
			// In a mount namespace that is so, with the stand-in.
			b.Wrap = []string{"unshare", "-m", "sh", "-c", "mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system && exec \"$@\"", "sh"}
		}
		restoreAsUnit(t, b)
	})
}

func restoreAsUnit(t *testing.T, b *harness.Box) {
	t.Helper()
	c := counter(b)
	show := func(unit, name string) string { return property(t, unit, name) }
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		systemd, address := harness.NewStandIn(t, b)
		c.Env, show = append(c.Env, address), systemd.Property
	}
	c.Spec.Linux.CgroupsPath = ""
	c.Spec.Linux.Resources = &specs.LinuxResources{Pids: &specs.LinuxPids{Limit: ptr(int64(50))}}
	unit := "berth-" + c.ID + ".scope"
	counting(t, c)
	if got := show(unit, "TasksMax"); got != "50" {
		t.Errorf("TasksMax is %s", got)
	}
	image := b.Path("image")
	c.Command("checkpoint", []string{"--image-path", image}).Run().OK(t)
	c.WaitExit()
	wait.Until(t, "the unit is gone", func() bool { return show(unit, "LoadState") == "not-found" })

	c.Spec.Linux.Resources.Pids.Limit = ptr(int64(20))
	second := newPipes(t)
	second.give(c)
	restore(c, "--image-path", image).OK(t)
	second.expect("two", "two 2")
	if got := show(unit, "TasksMax"); got != "20" {
		t.Errorf("TasksMax is %s after the restore", got)
	}
	at := show(unit, "ControlGroup")
	for line := range strings.Lines(readFile(t, procPath(c.PID, "cgroup"))) {
		if !strings.HasSuffix(strings.TrimSpace(line), ":"+at) {
			t.Errorf("the restored process is in %s", line)
		}
	}
	second.in.Close()
	if status := c.WaitExit(); status.ExitStatus() != 7 {
		t.Errorf("the restored process ended with %v, want status 7", status)
	}
	c.Delete()
	wait.Until(t, "the unit is gone", func() bool { return show(unit, "LoadState") == "not-found" })
}
