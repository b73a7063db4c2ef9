package integration

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

// What spec writes is a config that runs, but for its program and its terminal.
func TestSpecCommand(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	b.Berth("spec", "-b", c.Dir).OK(t)
	var s specs.Spec
	path := filepath.Join(c.Dir, "config.json")
	harness.Decode(t, readFile(t, path), &s)
	if s.Version == "" || s.Root.Path != "rootfs" || !s.Root.Readonly || !s.Process.Terminal || len(s.Process.Args) != 1 || s.Process.Args[0] != "sh" {
		t.Errorf("%+v", s)
	}
	cgroup := c.Spec.Linux.CgroupsPath
	c.Spec = &s
	s.Process.Terminal, s.Linux.CgroupsPath = false, cgroup
	harness.MountAt(t, c.Look(), "/sys/fs/cgroup")

	before := readFile(t, path)
	b.Berth("spec", "--bundle", c.Dir).Fails(t, "config.json")
	if readFile(t, path) != before {
		t.Error("the config was overwritten")
	}
}

// As runc has it: scripts that add a cgroup namespace on v1 would have two.
func TestSpecCommandAndTheCgroupNamespace(t *testing.T) {
	b := harness.New(t)
	for _, flags := range [][]string{nil, {"--rootless"}} {
		dir := t.TempDir()
		b.Berth(append([]string{"spec", "--bundle", dir}, flags...)...).OK(t)
		var s specs.Spec
		harness.Decode(t, readFile(t, filepath.Join(dir, "config.json")), &s)
		has := slices.ContainsFunc(s.Linux.Namespaces, func(n specs.LinuxNamespace) bool { return n.Type == specs.CgroupNamespace })
		unified := true
		for _, h := range harness.Hierarchies(t) {
			unified = unified && h.Unified
		}
		if has != unified {
			t.Errorf("%v: a cgroup namespace %v, cgroup v2 alone %v", flags, has, unified)
		}
	}
}

func TestSpecCommandInTheWorkingFolder(t *testing.T) {
	b := harness.New(t)
	cmd := b.Command("spec")
	cmd.Dir = b.Dir
	cmd.Run().OK(t)
	if _, err := os.Stat(b.Path("config.json")); err != nil {
		t.Error(err)
	}
}

func TestSpecCommandRootless(t *testing.T) {
	b := harness.New(t)
	cmd := b.Command("spec", "--rootless")
	cmd.Dir = b.Dir
	cmd.Run().OK(t)
	var s specs.Spec
	harness.Decode(t, readFile(t, b.Path("config.json")), &s)
	kinds := map[specs.LinuxNamespaceType]bool{}
	for _, ns := range s.Linux.Namespaces {
		kinds[ns.Type] = true
	}
	if !kinds[specs.UserNamespace] || kinds[specs.NetworkNamespace] || len(s.Linux.UIDMappings) != 1 || s.Linux.Resources != nil {
		t.Errorf("%+v", s.Linux)
	}
}
