package attacks

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
	"github.com/berth-runtime/berth/test/inside/view"
)

// A swapper exchanges directories and files with links that lead outside, as fast as it can, until
// it is stopped.
type swapper struct {
	pairs [][2]string
	swaps atomic.Int64
	stop  atomic.Bool
	ended chan error
}

// swap begins. What is at each name is exchanged with a link to the same name below to.
func swap(t testing.TB, root, to string, names []string) *swapper {
	t.Helper()
	s := &swapper{ended: make(chan error, 1)}
	for _, name := range names {
		at := filepath.Join(root, name)
		check(t, os.Symlink(filepath.Join(to, name), at+".swap"))
		s.pairs = append(s.pairs, [2]string{at, at + ".swap"})
	}
	go func() {
		runtime.LockOSThread() // one that the scheduler need not share
		s.ended <- s.run()
	}()
	return s
}

// end stops it, takes the links away and puts everything back in its place. It returns how often it
// has exchanged.
func (s *swapper) end(t testing.TB) int64 {
	t.Helper()
	s.stop.Store(true)
	check(t, <-s.ended)
	for _, p := range s.pairs { // those above before those below: the names below are then those of the directory
		if info, err := os.Lstat(p[0]); err == nil && info.Mode()&os.ModeSymlink != 0 {
			check(t, unix.Renameat2(unix.AT_FDCWD, p[0], unix.AT_FDCWD, p[1], unix.RENAME_EXCHANGE))
		}
		check(t, os.Remove(p[1]))
	}
	return s.swaps.Load()
}

func (s *swapper) run() error {
	for !s.stop.Load() {
		for _, p := range s.pairs {
			switch err := unix.Renameat2(unix.AT_FDCWD, p[0], unix.AT_FDCWD, p[1], unix.RENAME_EXCHANGE); err {
			case nil:
				s.swaps.Add(1)
			case unix.ENOENT, unix.EBUSY, unix.ENOTDIR, unix.EINVAL, unix.ELOOP, unix.EXDEV:
				// A parent that is a link just now makes a name vanish, or leads elsewhere.
			default:
				return &os.PathError{Op: "exchange", Path: p[0], Err: err}
			}
		}
	}
	return nil
}

// raced are the components that are exchanged: those of mount targets, of what is masked and made
// read-only, of device nodes, links and the working directory.
var raced = []string{
	"srv", "srv/a", "srv/a/b", "srv/a/b/c", "srv/a/file", "var", "var/cache", "home", "home/user", "etc", "etc/secret", "etc/fixed",
	"data", "opt", "opt/nodes", "dev", "proc", "sys", "made",
}

var racedDirs = []string{"srv/a/b/c", "var/cache", "home/user", "etc/fixed", "data/deep", "opt/nodes", "dev", "proc", "sys", "made"}
var racedFiles = map[string]string{
	"srv/a/file": "file", "etc/secret": "secret", "etc/fixed/file": "fixed", "data/deep/file": "data",
	"etc/passwd": "root:x:0:0:root:/outside-home:/bin/sh\n", "proc/sys/kernel/domainname": "kept",
}

// While components are exchanged for links to the same names outside, containers are made that
// mount, make directories, files, devices and links at all of them (CVE-2021-30465, CVE-2024-45310,
// CVE-2025-31133, CVE-2025-52565, CVE-2025-52881 and others): first one component at a time, so
// that the making gets far, then all at once.
func TestRace(t *testing.T) {
	b := harness.New(t)
	o := newOutside(b, racedFiles, racedDirs...)
	c := racedContainer(b)
	// Resolved inside the root, a link's path is there too: it need not end the making.
	makeTree(t, c.Path(o.dir), racedFiles, racedDirs)
	lure(t, b)
	r := race{b: b, o: o, c: c}
	for _, name := range raced {
		r.against(t, []string{name}, 4)
	}
	check(t, os.RemoveAll(c.Path(o.dir)))
	for r.swaps < leastSwaps || r.all == 0 {
		r.against(t, raced, 20)
		r.all++
	}
	o.untouched()
	if r.made == 0 || r.refused == 0 {
		t.Errorf("%d containers were made and %d refused: the race was too hard or too easy", r.made, r.refused)
	}
	t.Logf("%d swaps, %d containers made, %d refused", r.swaps, r.made, r.refused)
	harness.Report(t, "swaps", r.swaps, "containers made", r.made, "refused", r.refused)
}

const leastSwaps = 20_000

type race struct {
	b                         *harness.Box
	o                         *outside
	c                         *harness.Container
	swaps, made, refused, all int
}

// against makes containers while the names are exchanged.
func (r *race) against(t *testing.T, names []string, rounds int) {
	t.Helper()
	s := swap(t, r.c.Rootfs(), r.o.dir, names)
	for range rounds {
		if got := r.c.TryCreate(); got.Code == 0 {
			r.made++
			r.c.Delete("--force")
			r.c.WaitExit()
		} else {
			r.refused++
			got.Fails(t)
		}
		mountedInside(t, r.b, r.c)
	}
	r.swaps += int(s.end(t))
}

// racedContainer has something at all of the raced names.
func racedContainer(b *harness.Box) *harness.Container {
	b.T.Helper()
	c := b.Container("/bin/true")
	files := map[string]string{}
	for name, content := range racedFiles {
		if name != "etc/passwd" {
			files[name] = content
		}
	}
	makeTree(b.T, c.Rootfs(), files, racedDirs)
	volume := b.Path("volume")
	makeTree(b.T, volume, map[string]string{"file": "in the volume"}, nil)
	c.Spec.Mounts = append(c.Spec.Mounts,
		bind("/srv/a/b/c", volume), bind("/srv/a/file", filepath.Join(volume, "file")),
		bind("/made/by/the/way", volume), bind("/made/file", filepath.Join(volume, "file")),
		specs.Mount{Destination: "/var/cache", Type: "tmpfs", Source: "tmpfs"},
		specs.Mount{Destination: "/data/deep", Type: "tmpfs", Source: "tmpfs", Options: []string{"tmpcopyup"}},
	)
	c.Spec.Process.Cwd = "/home/user/work"
	c.Spec.Linux.MaskedPaths = append(c.Spec.Linux.MaskedPaths, "/etc/secret")
	c.Spec.Linux.ReadonlyPaths = append(c.Spec.Linux.ReadonlyPaths, "/etc/fixed")
	c.Spec.Linux.Sysctl = map[string]string{"kernel.domainname": "changed"}
	c.Spec.Linux.Devices = []specs.LinuxDevice{{Path: "/opt/nodes/null", Type: "c", Major: 1, Minor: 3}}
	c.Spec.Linux.Resources = nil
	// It runs before the root is entered, so that it sees what was mounted where.
	c.Spec.Hooks = &specs.Hooks{CreateContainer: []specs.Hook{{Path: harness.Helper(b.T), Args: []string{"hook", "hook", "mounts", b.Path("calls")}}}}
	withoutMount(c, "/dev") // so that device nodes and links are made in the image's own
	withoutMount(c, "/dev/pts")
	withoutMount(c, "/dev/shm")
	withoutMount(c, "/dev/mqueue")
	return c
}

// mountedInside looks at what the hook saw: each mount that the host has not is below the root file
// system.
func mountedInside(t *testing.T, b *harness.Box, c *harness.Container) {
	t.Helper()
	text, err := os.ReadFile(b.Path("calls"))
	if os.IsNotExist(err) {
		return // it was refused before
	}
	check(t, err)
	unlink(t, b.Path("calls"))
	for line := range strings.Lines(string(text)) {
		var call view.HookCall
		harness.Decode(t, line, &call)
		for _, m := range call.View.Mounts {
			if strings.HasPrefix(m.Target, b.Dir) && m.Target != c.Rootfs() && !strings.HasPrefix(m.Target, c.Rootfs()+"/") {
				t.Errorf("%s is mounted on %s, outside of the root file system", m.Type, m.Target)
			}
		}
	}
}

// lure shows that the attack works where it can: code that makes a directory by the path's name is
// led outside.
func lure(t *testing.T, b *harness.Box) {
	t.Helper()
	root, lured := b.Path("lured"), filepath.Join(b.Dir, "lured-outside")
	makeTree(t, root, nil, []string{"a"})
	makeTree(t, lured, nil, []string{"a"})
	s := swap(t, root, lured, []string{"a"})
	for tries := 0; ; tries++ {
		// The check is right, and what it has checked is something else when it is used.
		if info, err := os.Lstat(filepath.Join(root, "a")); err == nil && info.IsDir() {
			_ = os.Mkdir(filepath.Join(root, "a/made"), 0o755)
		}
		if _, err := os.Lstat(filepath.Join(lured, "a/made")); err == nil {
			t.Logf("code that checks before it uses was led outside after %d tries", tries+1)
			s.end(t)
			return
		}
		_ = os.Remove(filepath.Join(root, "a/made"))
		if tries == 1_000_000 {
			s.end(t)
			t.Fatalf("the attack does not work: %d tries were not enough against code that checks before it uses", tries)
		}
	}
}
