package dropin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

// NeedTime skips a test that takes too long for every run: make test-dropin has them all.
func NeedTime(t testing.TB) {
	t.Helper()
	if os.Getenv("BERTH_DROPIN") == "" {
		harness.Skip(t, "takes minutes on a busy machine: make test-dropin runs it")
	}
}

// Machine is what clients find of the machine: its own directories, with those of a
// box in the place of the ones that they write to.
type Machine struct {
	b *harness.Box
	// Bin is put in front of PATH.
	Bin    string
	mounts []string
	// systemd says that it runs here.
	systemd bool
	before  []string // cgroups that podman's containers have, of whomever
}

// NewMachine makes the directories, puts them in place until the end of the test, and
// looks then for what containers have left.
func NewMachine(b *harness.Box) *Machine {
	b.T.Helper()
	m := &Machine{b: b, Bin: b.Path("bin")}
	b.T.Cleanup(m.end)
	m.must(os.MkdirAll(m.Bin, 0o755))
	m.before = m.podmanCgroups()
	over := b.Path("over")
	// The upper directory of an overlay may not be on one, as the root of a machine in a container
	// is.
	m.mount("tmpfs", over, "tmpfs", "mode=755")
	for _, dir := range []string{"/etc", "/usr/local", "/var/lib"} {
		upper, work := filepath.Join(over, dir, "upper"), filepath.Join(over, dir, "work")
		m.must(os.MkdirAll(upper, 0o755))
		m.must(os.MkdirAll(work, 0o755))
		m.mount("overlay", dir, "overlay", "lowerdir="+dir+",upperdir="+upper+",workdir="+work)
	}
	m.mountRun()
	m.mount("tmpfs", "/dev/shm", "tmpfs", "mode=1777") // for podman's locks
	// Nor can the storage of a client have its layers on an overlay.
	for _, dir := range []string{"/var/lib/docker", "/var/lib/containers"} {
		own := b.Path(strings.TrimPrefix(dir, "/"))
		m.must(os.MkdirAll(own, 0o755))
		m.mountAs(own, dir, "", unix.MS_BIND, "")
	}
	// A client that was there before is not the one under test.
	for _, name := range []string{"docker", "dockerd", "podman"} {
		if err := os.Remove("/usr/local/bin/" + name); err != nil && !errors.Is(err, os.ErrNotExist) {
			b.T.Fatal(err)
		}
	}
	return m
}

// mountRun leaves of /run only that by which systemd is reached, where it runs.
func (m *Machine) mountRun() {
	m.b.T.Helper()
	_, err := os.Stat("/run/systemd/system") // sd_booted(3)
	m.systemd = err == nil
	kept := map[string]*os.File{}
	if m.systemd {
		for _, dir := range []string{"/run/systemd", "/run/dbus"} {
			f, err := os.Open(dir)
			m.must(err)
			defer f.Close()
			kept[dir] = f
		}
	}
	m.mount("tmpfs", "/run", "tmpfs", "mode=755")
	for dir, f := range kept {
		m.mountAs(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), dir, "", unix.MS_BIND, "")
	}
}

// slice is that of the test's containers. A dash would be a slice within another.
func (m *Machine) slice() string { return strings.ReplaceAll(m.b.Tag, "-", "_") + ".slice" }

func (m *Machine) mount(source, target, kind, options string) {
	m.b.T.Helper()
	m.mountAs(source, target, kind, 0, options)
}

func (m *Machine) mountAs(source, target, kind string, flags uintptr, options string) {
	m.b.T.Helper()
	m.must(os.MkdirAll(target, 0o755))
	if err := unix.Mount(source, target, kind, flags, options); err != nil {
		harness.Skip(m.b.T, "needs %s mounts: %v", kind, err)
	}
	m.mounts = append(m.mounts, target)
}

func (m *Machine) must(err error) {
	m.b.T.Helper()
	if err != nil {
		m.b.T.Fatal(err)
	}
}

// leaveOrphans has orphans go to the host's init, which takes their statuses at once; this process,
// who gets them otherwise, does so at its end. Podman waits until conmon is gone, and a zombie is
// not; and the end of a container's first process waits for the zombies of what CRI-O has executed
// there.
func (m *Machine) leaveOrphans() {
	m.b.T.Helper()
	m.must(unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0))
	m.b.T.Cleanup(func() { unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) })
}

// podmanParent is below the root of each hierarchy. Podman knows no setting for another.
const podmanParent = "libpod_parent"

func (m *Machine) podmanCgroups() (found []string) {
	for _, h := range harness.Hierarchies(m.b.T) {
		filepath.WalkDir(filepath.Join(h.Dir, podmanParent), func(path string, e os.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				found = append(found, path)
			}
			return nil
		})
	}
	return found
}

// Install puts the engine where the pages put it.
func (m *Machine) Install() {
	m.b.T.Helper()
	program, err := os.ReadFile(harness.Engine(m.b.T))
	m.must(err)
	m.must(os.WriteFile("/usr/local/bin/berth", program, 0o755))
}

// InstallShim puts the shim there under a name, the one beside BERTH_BIN if that is set, and gives
// its path.
func (m *Machine) InstallShim(name string) string {
	m.b.T.Helper()
	path := "/usr/local/bin/" + name
	if engine := os.Getenv("BERTH_BIN"); engine != "" {
		program, err := os.ReadFile(filepath.Join(filepath.Dir(engine), "containerd-shim-berth-v2"))
		m.must(err)
		m.must(os.WriteFile(path, program, 0o755))
		return path
	}
	m.must(harness.Build("cmd/containerd-shim-berth-v2", path))
	return path
}

// Env is the environment of clients: nothing of the user's own configuration.
func (m *Machine) Env() []string {
	return []string{"PATH=" + m.Bin + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + m.b.Dir}
}

// image is the name of what Image makes.
const image = "localhost/drop-in"

// Image makes an archive of a root file system with busybox and test/inside.
func (m *Machine) Image() string {
	m.b.T.Helper()
	root, archive := m.b.Path("image"), m.b.Path("image.tar")
	harness.MakeRootfs(m.b.T, root)
	m.call("tar", "-C", root, "-cf", archive, ".").OK(m.b.T)
	return archive
}

func (m *Machine) command(name string, args ...string) *harness.Command {
	c := m.b.Command(args...)
	c.Bare, c.Binary, c.Env = true, name, m.Env()
	return c
}

func (m *Machine) call(name string, args ...string) harness.Result {
	m.b.T.Helper()
	return m.command(name, args...).Run()
}

// end looks where the engine keeps the state of each client's containers. Processes,
// cgroups and mounts are looked for by the box.
func (m *Machine) end() {
	m.b.T.Helper()
	m.b.ReapOrphans()
	m.b.WaitLeavers()
	for _, pattern := range []string{"/run/berth/*", "/run/docker/runtime-*/*/*", "/run/containerd/s/*", "/run/user/*/berth/*"} {
		left, _ := filepath.Glob(pattern)
		for _, path := range left {
			if filepath.Base(path) == harness.RootMark {
				continue // the root's own mark, which stays with it
			}
			m.b.T.Errorf("left behind: %s", path)
		}
	}
	for _, dir := range slices.Backward(m.podmanCgroups()) {
		// The parent, and conmon's group beneath it, are podman's own and shared by all containers;
		// it gives up removing them when two end at once.
		own := filepath.Base(dir) == podmanParent || filepath.Base(filepath.Dir(dir)) == podmanParent && filepath.Base(dir) == "conmon"
		if !slices.Contains(m.before, dir) && os.Remove(dir) == nil && !own {
			m.b.T.Errorf("left behind: cgroup %s", dir)
		}
	}
	for _, h := range harness.Hierarchies(m.b.T) {
		// The parent that dockerd was told to use; it stays where a container's is still in it.
		os.Remove(filepath.Join(h.Dir, m.b.Tag))
	}
	for i := len(m.mounts) - 1; i >= 0; i-- {
		// With what a client keeps mounted there for itself, like the namespace of its default
		// network.
		if err := unix.Unmount(m.mounts[i], unix.MNT_DETACH); err != nil {
			m.b.T.Errorf("unmount %s: %v", m.mounts[i], err)
		}
	}
}
