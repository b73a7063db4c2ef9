package neighbour

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/berth-runtime/berth/test/harness"
)

// Where nobody does anything, nothing is refused and nothing is broken.
func TestNobodyActs(t *testing.T) {
	s := newScene(t, firstUser)
	defer func() { s.end(t); s.b.ReapOrphans() }()
	for i, sh := range shapes {
		for j, c := range commands {
			if c.byCriu() && s.criu == "" {
				continue
			}
			if slices.Contains(c.not, sh.name) || c.only != nil && !slices.Contains(c.only, sh.name) {
				continue
			}
			// Each shape with the first command, and each command with the first shape and those of
			// which an engine does something else for it.
			if i > 0 && j > 0 && sh.name != hostPids && sh.name != rootless {
				continue
			}
			quiet := (&trial{s: s, shape: sh, command: c}).with(nil)
			if quiet.refused && !c.odd || len(quiet.broken) > 0 {
				t.Errorf("%s, %s: refused %v, broken: %q", sh.name, c, quiet.refused, quiet.broken)
			}
		}
	}
}

// The invariants are not blind: of a container that has more than a config says, each thing that is
// more is found, and so is each change to the canary.
func TestInvariantsSee(t *testing.T) {
	s := newScene(t, firstUser)
	defer func() { s.end(t); s.b.ReapOrphans() }()
	usual, poor := &trial{s: s, shape: shapes[0]}, &trial{s: s}
	s.target.Spec = s.config(shapes[0])
	usual.spec, poor.spec = s.target.Spec, s.config(shapes[slices.IndexFunc(shapes, func(sh shape) bool { return sh.name == "nobody" })])
	poor.spec.Linux.CgroupsPath = "/another"
	poor.spec.Linux.MaskedPaths = append(poor.spec.Linux.MaskedPaths, "/proc/self", "/sys/kernel")
	poor.spec.Linux.ReadonlyPaths = append(poor.spec.Linux.ReadonlyPaths, "/proc/net")
	poor.born = map[string]string{"mnt": "mnt:[1]"}
	a := newAgent(t)
	defer a.close()
	usual.engine(a, "create", nil, nil).Run().OK(t)
	usual.learn()
	usual.engine(a, "start", nil, nil).Run().OK(t)
	check(t, a.ready())
	_, err := a.do("lease=/etc/passwd") // which it has open from then on
	check(t, err)
	if more := usual.examine(usual.payload, rightsOf(usual.spec, usual.spec.Process), false); len(more) > 0 {
		t.Errorf("of its own config: %q", more)
	}
	seen := strings.Join(poor.examine(usual.payload, rightsOf(poor.spec, poor.spec.Process), true), "\n")
	for _, want := range []string{"capabilities Prm", "capabilities Eff", "capabilities Bnd", "no_new_privs", "Uid 0", "Gid 0", "namespace mnt", "cgroup ",
		"descriptor ", "/proc/self is not masked", "/sys/kernel is not masked", "/proc/net is not read-only"} {
		if !strings.Contains(seen, want) {
			t.Errorf("of another config: %q is not seen in\n%s", want, seen)
		}
	}
	// A process with more than the poor one has, of the user's own.
	other := exec.Command(harness.Helper(t), "as", strconv.Itoa(s.userID), harness.Helper(t), "hang")
	other.Env = append(os.Environ(), s.b.Mark())
	check(t, other.Start())
	for end := time.Now().Add(patience); len(poor.broken) == 0 && time.Now().Before(end); { // until it has become him
		got, err := s.agents[user].do("reach=")
		check(t, err)
		poor.judge(deed{act: act{by: user, do: "reach="}, got: got})
	}
	if len(poor.broken) == 0 {
		t.Error("who can trace a process with more is not seen")
	}
	check(t, other.Process.Kill())
	_ = other.Wait()

	usual.payload, s.target.PID = 0, usual.payload
	s.target.Delete("--force")
	s.target.WaitExit()

	if changes := s.canary.changes(); len(changes) > 0 {
		t.Errorf("nothing was done: %q", changes)
	}
	file := filepath.Join(s.canary.outside, "etc/passwd")
	for what, change := range map[string]func() error{
		"content": func() error { return os.WriteFile(file, []byte("another"), 0o600) },
		"mode":    func() error { return os.Chmod(file, 0o666) },
		"owner":   func() error { return os.Chown(file, 1, 1) },
		"new":     func() error { return os.Symlink("x", filepath.Join(s.canary.outside, "link")) },
		"gone":    func() error { return os.Remove(filepath.Join(s.canary.outside, "etc/secret")) },
		"limit":   func() error { return s.canary.limit() },
	} {
		check(t, change())
		if len(s.canary.changes()) == 0 {
			t.Errorf("a change of the canary's %s is not seen", what)
		}
	}
}
