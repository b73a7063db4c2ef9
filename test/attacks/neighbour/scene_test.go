package neighbour

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

// A scene is where the trials of one worker take place, one after another.
type scene struct {
	b      *harness.Box
	canary *canary
	target *harness.Container // the bundle that is made a container of in each trial
	agents map[string]*agent  // by principal; the payload's comes and goes
	close  []func()
	// userID is a number of nobody's on the host: another user's, and that of containers which are
	// not root.
	userID int

	criu    string // "" where there is none that works
	userPID int    // who acts as another user of the host
	member  int    // the first process of the pod's other container
	mounted []harness.Hierarchy
}

func newScene(t *testing.T, userID int) *scene {
	t.Helper()
	b := harness.New(t)
	harness.Fault(t)
	s := &scene{b: b, canary: newCanary(b), agents: map[string]*agent{}, userID: userID}
	s.target = b.Container()
	if criu, err := harness.Criu(); err == nil {
		s.criu = criu
		b.Globals = append(b.Globals, "--criu", criu)
	}
	// Not the file that all roots of the machine have: its mode is changed, and leases are taken on
	// it.
	check(t, os.WriteFile(b.Path("inside"), read(harness.Helper(t)), 0o755))
	check(t, os.Mkdir(b.Path("volume"), 0o777))
	s.fresh()
	s.admit(t)
	s.canary.kept = s.canary.look()
	return s
}

// admit starts the principals that stay from trial to trial.
func (s *scene) admit(t *testing.T) {
	t.Helper()
	c := s.b.Container("/inside", "agent")
	for destination, source := range map[string]string{"/shared": s.target.Rootfs(), "/volume": s.b.Path("volume")} {
		c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: destination, Type: "bind", Source: source, Options: []string{"rbind", "rw"}})
	}
	c.Spec.Linux.Resources = nil // it may make any node that it likes
	c.Spec.Process.Capabilities = &specs.LinuxCapabilities{}
	for _, set := range []*[]string{&c.Spec.Process.Capabilities.Bounding, &c.Spec.Process.Capabilities.Effective, &c.Spec.Process.Capabilities.Permitted} {
		*set = append(append(*set, harness.DefaultCaps...), "CAP_LEASE")
	}
	a := newAgent(t)
	c.Stdin, c.Stdout = a.stdin, a.stdout
	c.RunDetached()
	check(t, a.ready())
	s.agents[sibling] = a
	s.close = append(s.close, a.close, func() { c.Delete("--force"); c.WaitExit() })

	m := s.b.Container("/inside", "agent")
	for _, set := range []*[]string{&m.Spec.Process.Capabilities.Bounding, &m.Spec.Process.Capabilities.Effective, &m.Spec.Process.Capabilities.Permitted} {
		*set = append(slices.Clip(*set), "CAP_SYS_PTRACE")
	}
	a = newAgent(t)
	m.Stdin, m.Stdout = a.stdin, a.stdout
	m.RunDetached()
	check(t, a.ready())
	s.agents[member], s.member = a, m.PID
	s.close = append(s.close, a.close, func() { m.Delete("--force"); m.WaitExit() })

	a = newAgent(t)
	cmd := exec.Command(harness.Helper(t), "as", strconv.Itoa(s.userID), harness.Helper(t), "agent")
	cmd.Stdin, cmd.Stdout, cmd.Env = a.stdin, a.stdout, append(os.Environ(), s.b.Mark())
	check(t, cmd.Start())
	check(t, a.ready())
	s.agents[user], s.userPID = a, cmd.Process.Pid
	s.close = append(s.close, a.close, func() { _ = cmd.Wait() })
}

// end closes the scene. The caller reaps what has lost its parent, when all scenes have been
// closed.
func (s *scene) end(t *testing.T) {
	t.Helper()
	for _, f := range s.close {
		f()
	}
	if st := s.canary.c.State(); st.Status != "running" {
		t.Errorf("the canary is %s", st.Status)
	}
	s.canary.c.Delete("--force")
	s.canary.c.WaitExit()
}

// hierarchies are looked for once: reading the host's mounts takes longer than many a trial.
func (s *scene) hierarchies() []harness.Hierarchy {
	if s.mounted == nil {
		s.mounted = harness.Hierarchies(s.b.T)
	}
	return s.mounted
}

// clear removes a cgroup that the engine has left, with what is below.
func (s *scene) clear(dir string) {
	var all []string
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			all = append(all, path)
		}
		return nil
	})
	for _, path := range slices.Backward(all) {
		_ = syscall.Rmdir(path)
	}
}

// fresh makes the content of the root and the volume anew, in directories that stay, since the
// sibling has them mounted.
func (s *scene) fresh() {
	t := s.b.T
	t.Helper()
	root, volume := s.target.Rootfs(), s.b.Path("volume")
	for _, dir := range []string{root, volume} {
		entries, err := os.ReadDir(dir)
		check(t, err)
		for _, e := range entries {
			check(t, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	for _, dir := range []string{"bin", "proc/sys/kernel", "sys/firmware", "dev", "etc/fixed", "home/user", "srv/a", "var/cache", "opt/nodes", "tmp"} {
		for _, other := range []string{dir, double(dir)} {
			check(t, os.MkdirAll(filepath.Join(root, other), 0o755))
		}
	}
	check(t, os.RemoveAll(filepath.Join(root, "proc"))) // a mount point has nothing in it; its double may have what it likes
	check(t, os.Mkdir(filepath.Join(root, "proc"), 0o755))
	for _, dir := range []string{"home/user.other", "srv/a.other", "var/cache.other", "opt/nodes.other", "etc/fixed.other"} {
		check(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	const passwd = "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1001:User:/home/user:/bin/sh\n"
	for _, dir := range []string{"etc", "etc.other"} {
		for file, text := range map[string]string{"passwd": passwd, "passwd.other": "user:x:0:0::/:/bin/sh\n", "secret": "secret", "secret.other": "", "group": "players:x:2000:user\n"} {
			check(t, os.WriteFile(filepath.Join(root, dir, file), []byte(text), 0o644))
		}
	}
	check(t, os.Chmod(s.b.Path("inside"), 0o755))
	check(t, os.Link(s.b.Path("inside"), filepath.Join(root, "inside")))
	check(t, os.Link(s.b.Path("inside"), filepath.Join(root, "inside.other")))
	check(t, os.Link(filepath.Join(filepath.Dir(harness.Helper(t)), "busybox"), filepath.Join(root, "bin/busybox")))
	for _, name := range []string{"data", "data.other"} {
		check(t, os.MkdirAll(filepath.Join(volume, name), 0o755))
		check(t, os.WriteFile(filepath.Join(volume, name, "file"), []byte("shared"), 0o644))
	}
	// A disk of the host, for anyone to open.
	check(t, syscall.Mknod(filepath.Join(root, "disk"), syscall.S_IFBLK|0o666, 7<<8))
	check(t, os.Chmod(filepath.Join(root, "disk"), 0o666))
}

// double is the name of another tree like the one that a path is in.
func double(path string) string {
	top, rest, _ := strings.Cut(path, "/")
	return filepath.Join(top+".other", rest)
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
