package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/berth-runtime/berth/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// page runs the blocks of a page. With a directory they begin there, else in an empty one.
func page(t *testing.T, name, dir string, env ...string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", name))
	if err != nil {
		t.Fatal(err)
	}
	blocks := Parse(string(text))
	if len(blocks) == 0 {
		t.Fatalf("%s has no commands", name)
	}
	if dir == "" {
		dir = t.TempDir()
	}
	for _, b := range blocks {
		var out string
		if out, dir, err = b.Run(dir, env, limit); err != nil {
			t.Fatalf("%s:%d: %v\n%s", name, b.Line, err, out)
		}
	}
}

// limit is what one block may take, on a machine with much else to do.
const limit = 5 * time.Minute

// commands is a directory with berth under a name, for PATH, that keeps to the test's
// own state.
func commands(t *testing.T, b *harness.Box, names ...string) string {
	t.Helper()
	for _, name := range names {
		b.WriteFile("bin/"+name, "#!/bin/sh\nexec "+harness.Engine(t)+" --root "+b.Root+" \"$@\"\n", 0o755)
	}
	return "PATH=" + b.Path("bin") + ":" + os.Getenv("PATH")
}

func TestBox(t *testing.T) {
	harness.Controller(t, "memory")
	harness.Controller(t, "cpu")
	harness.Controller(t, "pids")
	b := harness.New(t)
	page(t, "docs/box.md", "", commands(t, b, "berth"))
}

func TestTutorial(t *testing.T) {
	if _, err := exec.LookPath("busybox"); err != nil {
		harness.Skip(t, "needs a static busybox: %v", err)
	}
	harness.Controller(t, "pids")
	b := harness.New(t)
	defer b.ReapOrphans() // the test is the parent of what a detached container leaves
	page(t, "docs/tutorial.md", "", commands(t, b, "berth"))
}

// The README is for a user who has just cloned the repository, so its commands
// run in a directory that looks like that, with what was built already.
func TestReadme(t *testing.T) {
	b := harness.New(t)
	env := commands(t, b, "berth")
	b.WriteFile("bin/sudo", "#!/bin/sh\nexec \"$@\"\n", 0o755)
	// What is built is there already, and the tests are what runs this.
	b.WriteFile("bin/make", "#!/bin/sh\ncase $* in run) exec build/scripts/first-run ;; build | test) ;; *) exit 2 ;; esac\n", 0o755)
	scripts, err := filepath.Abs("../../build")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, target := range map[string]string{"bin": b.Path("bin"), "build": scripts} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	page(t, "README.md", dir, env)
}

// What explains runs as well, so that it stays true.
func TestExplanations(t *testing.T) {
	harness.NeedTool(t, "busybox", "busybox-static")
	for _, name := range []string{"architecture", "init", "cgroups"} {
		t.Run(name, func(t *testing.T) {
			b := harness.New(t)
			defer b.ReapOrphans()
			page(t, "docs/"+name+".md", "", commands(t, b, "berth"))
		})
	}
}

// The places that it names are where it says.
func TestContributing(t *testing.T) { page(t, "docs/contributing.md", "../..") }
