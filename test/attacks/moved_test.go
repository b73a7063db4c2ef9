package attacks

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/test/harness"
)

// moved starts a container and waits until its script has written the file /moved.
func moved(b *harness.Box, change func(*specs.Spec), script string) *harness.Container {
	b.T.Helper()
	c := b.Container("/bin/sh", "-c", script)
	c.WriteFile("moved", "", 0o666)
	if change != nil {
		change(c.Spec)
	}
	c.RunDetached()
	wait.Until(b.T, "the container's process gets where it is to go", func() bool {
		data, _ := os.ReadFile(c.Path("moved"))
		return len(data) > 0
	})
	return c
}

// withGroups has the engine called with supplementary groups.
func withGroups(cmd *harness.Command) *harness.Command {
	cmd.Attr = &syscall.SysProcAttr{Credential: &syscall.Credential{Groups: []uint32{0, 4, 4242}}}
	return cmd
}

// The first process moves to a user namespace of its own, where setgroups is denied. What exec adds
// does not follow it, and has none of the caller's groups.
func TestExecDoesNotFollow(t *testing.T) {
	harness.NeedNamespace(t, "user")
	uid1000 := func(s *specs.Spec) {
		s.Process.User = specs.User{UID: 1000, GID: 1000}
		s.Process.Capabilities = &specs.LinuxCapabilities{}
	}
	const fence = "unshare -U -r sh -c 'cat /proc/self/setgroups > /moved; exec sleep 1000'"
	look := func(b *harness.Box, c *harness.Container) harness.Result {
		return withGroups(c.Command("exec", nil, "/inside", "look")).Run()
	}
	t.Run("user namespace", func(t *testing.T) {
		b := harness.New(t)
		c := moved(b, uid1000, "exec "+fence)
		host, err := os.Readlink("/proc/self/ns/user")
		check(t, err)
		if now, _ := os.Readlink(filepath.Join("/proc", strconv.Itoa(c.PID), "ns/user")); now == host {
			t.Fatal("the process has not moved")
		}
		v := harness.ParseView(t, look(b, c).OK(t).Stdout)
		if v.NS["user"] != host {
			t.Errorf("the process that was added is in %s, the container's is %s", v.NS["user"], host)
		}
		if v.Status["Groups"] != "" || v.Status["Uid"] != "1000 1000 1000 1000" {
			t.Errorf("the process that was added is %s with the groups %q", v.Status["Uid"], v.Status["Groups"])
		}
		c.Delete("--force")
		c.WaitExit()
	})
	t.Run("user namespace of a container with one", func(t *testing.T) {
		b := harness.New(t)
		mapped := func(s *specs.Spec) {
			uid1000(s)
			harness.UserNamespace(s)
			s.Linux.Resources = nil
		}
		// Nobody is left in it.
		c := moved(b, mapped, "exec "+fence)
		look(b, c).FailsWith(t, 255, "has left the user namespace")
		c.Delete("--force")
		c.WaitExit()
		// A process is.
		c = moved(b, mapped, "sleep 1000 & exec "+fence)
		v := harness.ParseView(t, look(b, c).OK(t).Stdout)
		if own, _ := os.Readlink(filepath.Join("/proc", strconv.Itoa(c.PID), "ns/user")); v.NS["user"] == own || v.Status["Groups"] != "" {
			t.Errorf("the process that was added is in %s with the groups %q", v.NS["user"], v.Status["Groups"])
		}
		c.Delete("--force")
		c.WaitExit()
	})
	t.Run("mount namespace", func(t *testing.T) {
		b := harness.New(t)
		admin := func(s *specs.Spec) {
			all := append([]string{"CAP_SYS_ADMIN"}, harness.DefaultCaps...)
			s.Process.Capabilities = &specs.LinuxCapabilities{Bounding: all, Effective: all, Permitted: all}
		}
		const fence = "unshare -m -n -u -i sh -c 'echo there > /moved; exec sleep 1000'"
		c := moved(b, admin, "exec "+fence)
		look(b, c).FailsWith(t, 255, "has left the mnt namespace")
		c.Delete("--force")
		c.WaitExit()
		c = moved(b, admin, "sleep 1000 & exec "+fence)
		v := harness.ParseView(t, look(b, c).OK(t).Stdout)
		for _, kind := range []string{"mnt", "net", "uts", "ipc"} {
			if own, _ := os.Readlink(filepath.Join("/proc", strconv.Itoa(c.PID), "ns", kind)); v.NS[kind] == own {
				t.Errorf("the process that was added followed into the %s namespace", kind)
			}
		}
		c.Delete("--force")
		c.WaitExit()
	})
	for name, change := range map[string]func(*specs.Spec){
		"root": nil,
		"root in the host's mounts": func(s *specs.Spec) {
			harness.WithoutNamespace(s, specs.MountNamespace)
			s.Mounts, s.Linux.MaskedPaths, s.Linux.ReadonlyPaths = nil, nil, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := harness.New(t)
			c := moved(b, change, `mkdir -p /jail/bin && cp /bin/busybox /jail/bin && exec 9> /moved &&
				exec chroot /jail /bin/busybox sh -c 'echo there >&9; exec /bin/busybox sleep 1000'`)
			c.Exec(nil, "/inside", "try", "read=/inside").OK(t)
			c.Delete("--force")
			c.WaitExit()
		})
	}
	harness.Report(t, "attacks", 7)
}

// --cgroup leads nowhere but into the container's own cgroup.
func TestExecCgroupStaysInside(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/sleep", "1000").RunDetached()
	own, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(c.PID), "cgroup"))
	check(t, err)
	forms := []string{"..", "/..", "/../x", "../x", "x/../../y", "./../x", "/./..", "/", ".", "./.", "//", "/.//", "x/..", ""}
	for _, controller := range []string{"", "pids:", "memory:", "pids,memory:", "name=systemd:", "cpu:"} {
		for _, form := range forms {
			r := c.Exec([]string{"--cgroup", controller + form}, "/bin/cat", "/proc/self/cgroup")
			if slices.Contains(strings.Split(form, "/"), "..") {
				r.Exits(t, 255)
			}
			if r.Code == 0 && strings.Contains(r.Stdout, "/..") {
				t.Errorf("--cgroup %s: %s", controller+form, r.Stdout)
			}
		}
	}
	if now, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(c.PID), "cgroup")); string(now) != string(own) {
		t.Errorf("the first process is in %s", now)
	}
	c.Delete("--force")
	c.WaitExit()
	harness.Report(t, "attacks", 6*len(forms))
}
