package cgroup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// inNamespaces plays a role below the group in namespaces of its own.
func inNamespaces(t *testing.T, g *Group, flags string, role string) {
	t.Helper()
	out, state := run(t, g, "nest:"+flags+":"+role)
	if reason, skip := strings.CutPrefix(out, "skip: "); skip {
		t.Skip(reason)
	}
	if !state.Success() || out != "ok" {
		t.Errorf("%v: %s", state, out)
	}
}

// In a cgroup namespace, with a mount of its own, the namespace's root is "/",
// and the host's mounts, which show more, are passed over for it.
func TestInCgroupNamespace(t *testing.T) {
	host := hostForTest(t)
	needUnified(t, host)
	needRoot(t, host)
	g := makeGroup(t, host, Enable())
	inNamespaces(t, g, "cgroup", "inside:"+filepath.Join(g.Directory("unified"), "child"))
}

// Controllers that nobody has mounted, together, under a name with a space.
func TestMountedElsewhere(t *testing.T) {
	host := hostForTest(t)
	needRoot(t, host)
	for _, name := range []string{"net_cls", "net_prio"} {
		if host.Controller(name) != nil {
			t.Skipf("%s is in use here", name)
		}
	}
	inNamespaces(t, makeGroup(t, host, Enable()), "mount", "elsewhere:")
}

// A tmpfs over the mount points hides them, whatever the table says.
func TestHiddenMounts(t *testing.T) {
	host := hostForTest(t)
	needRoot(t, host)
	inNamespaces(t, makeGroup(t, host, Enable()), "mount", "hidden:")
}

// released reports whether a controller is on no version 1 hierarchy.
func released(controller string) bool {
	text, _ := os.ReadFile("/proc/cgroups")
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 4 && f[0] == controller {
			return f[1] == "0"
		}
	}
	return true
}

func init() {
	roles["nest"] = func(argument string) {
		flags, role, _ := strings.Cut(argument, ":")
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), roleVariable+"="+role)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
		if flags == "cgroup" {
			cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWCGROUP
		}
		if err := cmd.Run(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	fail := func(format string, args ...any) {
		fmt.Printf(format+"\n", args...)
		os.Exit(1)
	}
	private := func() string {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			fail("private mounts: %v", err)
		}
		if err := unix.Mount("tmpfs", "/mnt", "tmpfs", 0, ""); err != nil {
			fail("tmpfs: %v", err)
		}
		return "/mnt"
	}
	roles["inside"] = func(child string) {
		dir := private() + "/cgroup two"
		os.Mkdir(dir, 0o755)
		if err := unix.Mount("cgroup2", dir, "cgroup2", 0, ""); err != nil {
			fmt.Printf("skip: no mount of cgroup2 here: %v", err)
			return
		}
		host, err := Detect()
		if err != nil {
			fail("detect: %v", err)
		}
		if got := host.Unified().Mountpoint; got != dir {
			fail("version 2 is found at %s, with root %s", got, host.Unified().Root)
		}
		own, err := host.OfProcess(0, Only("unified"))
		if err != nil || own.Path() != "/" {
			fail("this process is in %v, %v", own, err)
		}
		g, err := host.Create("/child", Only("unified"), Enable())
		if err != nil {
			fail("create: %v", err)
		}
		if _, err := os.Stat(child); err != nil {
			fail("the host does not see it: %v", err)
		}
		if err := g.Destroy(); err != nil {
			fail("destroy: %v", err)
		}
		// What is mounted from above the namespace has no name for our place.
		for _, h := range host.Hierarchies() {
			if h.Version == 1 && !strings.HasPrefix(h.Root, "/..") {
				fail("%s has root %s", h, h.Root)
			}
		}
		fmt.Print("ok")
	}
	roles["elsewhere"] = func(string) {
		dir := private() + "/net controllers"
		os.Mkdir(dir, 0o755)
		if err := unix.Mount("net", dir, "cgroup", 0, "net_cls,net_prio"); err != nil {
			fmt.Printf("skip: net_cls and net_prio cannot be mounted: %v", err)
			return
		}
		// The kernel keeps a hierarchy that had a dying group when it was
		// unmounted; then mounting it once more lets it go.
		defer func() {
			unix.Unmount(dir, 0)
			for range 40 {
				for look := time.Now(); time.Since(look) < 500*time.Millisecond; busyFor(5 * time.Millisecond) {
					if released("net_cls") {
						fmt.Print("ok")
						return
					}
				}
				if unix.Mount("net", dir, "cgroup", 0, "net_cls,net_prio") == nil {
					unix.Unmount(dir, 0)
				}
			}
			fail("net_cls is still on version 1")
		}()
		host, err := Detect()
		if err != nil {
			fail("detect: %v", err)
		}
		h := host.Controller("net_cls")
		if h == nil || h.Mountpoint != dir || h != host.Controller("net_prio") {
			fail("net_cls is found at %+v", h)
		}
		g, err := host.Create("/berth-test-net", Only("net_cls"))
		if err != nil {
			fail("create: %v", err)
		}
		class := uint32(0x100001)
		_, err = g.Set(&specs.LinuxResources{Network: &specs.LinuxNetwork{
			ClassID: &class, Priorities: []specs.LinuxInterfacePriority{{Name: "lo", Priority: 3}},
		}})
		if err != nil {
			fail("set: %v", err)
		}
		if got, ok := g.present("net_cls", "net_cls.classid"); !ok || got != "1048577" {
			fail("class %s", got)
		}
		if got, _ := g.present("net_prio", "net_prio.ifpriomap"); !strings.Contains(got, "lo 3") {
			fail("priorities %s", got)
		}
		if err := g.Destroy(); err != nil {
			fail("destroy: %v", err)
		}
	}
	roles["hidden"] = func(string) {
		before, err := Detect()
		if err != nil {
			fail("detect: %v", err)
		}
		private()
		for _, h := range before.Hierarchies() {
			if err := unix.Mount("tmpfs", h.Mountpoint, "tmpfs", 0, ""); err != nil {
				fail("cover %s: %v", h.Mountpoint, err)
			}
		}
		after, err := Detect()
		if err != nil {
			fail("detect: %v", err)
		}
		if after.Mode() != None {
			fail("%v is found below a tmpfs", after.Hierarchies()[0])
		}
		if _, err := after.Create("/x"); err != ErrNotMounted {
			fail("create: %v", err)
		}
		fmt.Print("ok")
	}
}
