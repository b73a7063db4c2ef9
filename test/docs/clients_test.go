package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/test/dropin"
	"github.com/berth-runtime/berth/test/harness"
)

// checkout is a directory with what the pages install: a built engine in bin/.
func checkout(t *testing.T, dir string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(harness.Engine(t), filepath.Join(dir, "bin/berth")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestDockerPage(t *testing.T) {
	b := harness.New(t)
	d := dropin.NewDocker(b)
	page(t, "docs/docker.md", checkout(t, b.Path("page")), d.Env()...)
}

func TestPodmanPage(t *testing.T) {
	b := harness.New(t)
	p := dropin.NewPodman(b)
	page(t, "docs/podman.md", checkout(t, p.Own("page")), p.Env()...)
}

// What calls podman is for an ordinary user too; what does not is for root.
func TestPodmanPageOfOrdinaryUser(t *testing.T) {
	dropin.NeedTime(t)
	b := harness.New(t)
	p := dropin.NewPodman(b)
	p.AsOrdinaryUser()
	dir := checkout(t, p.Own("page"))
	env := p.Env()
	b.WriteFile("bin/as-user", "#!/bin/sh\nexec "+strings.Join(p.Become(), " ")+` "$@"`+"\n", 0o755)
	text, err := os.ReadFile("../../docs/podman.md")
	if err != nil {
		t.Fatal(err)
	}
	his := 0
	for _, block := range Parse(string(text)) {
		if strings.Contains(block.Script, "podman ") {
			his++
			b.WriteFile("block", "set -euo pipefail\n"+block.Script, 0o644)
			block.Script = "as-user bash " + b.Path("block")
		}
		if out, _, err := block.Run(dir, env, limit); err != nil {
			t.Fatalf("docs/podman.md:%d: %v\n%s", block.Line, err, out)
		}
	}
	if his < 3 {
		t.Errorf("only %d blocks of the page call podman", his)
	}
}

// A pod that chooses no runtime is Berth's in the end.
func TestCRIOPage(t *testing.T) {
	dropin.NeedTime(t)
	b := harness.New(t)
	c := dropin.NewCRIO(b)
	c.Image()
	page(t, "docs/cri-o.md", checkout(t, b.Path("page")), c.Env()...)
	pod := c.Pod("pod", "")
	one := pod.Run("exec sleep 1000", nil)
	if out := b.Berth("--root", "/run/berth", "list", "-q").OK(t).Stdout; out != one.ID+"\n" {
		t.Errorf("berth list shows %q, not %s", out, one.ID)
	}
	pod.Remove()
}
