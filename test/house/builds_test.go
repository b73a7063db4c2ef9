package house

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// berthBy builds berth as go build does with other flags than ours.
func berthBy(t *testing.T, env, flags []string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "berth")
	args := append(append([]string{"build", "-trimpath", "-o", path}, flags...), "./cmd/berth")
	mustGo(t, top(t), env, args...)
	return path
}

// behaves has a program tell its version, and run a command long enough that the rest of the
// program is confined meanwhile.
func behaves(t *testing.T, berth string) {
	t.Helper()
	out, err := exec.Command(berth, "--version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "berth version ") {
		t.Errorf("--version: %v\n%s", err, out)
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root for a box")
	}
	box := exec.Command(berth, "box", "--", "sh", "-c", "sleep 1.2; echo done")
	var complaints strings.Builder
	box.Stderr = &complaints
	out, err = box.Output()
	if err != nil || string(out) != "done\n" || complaints.Len() > 0 {
		t.Errorf("a box: %v, %q, and it complains %q", err, out, complaints.String())
	}
}

// A build with any flags gives a program that works and does not complain at each run.
func TestOtherBuildsBehave(t *testing.T) {
	if testing.Short() {
		t.Skip("linking berth in four ways is not short")
	}
	for name, c := range map[string]struct{ env, flags []string }{
		"plain":    {[]string{"CGO_ENABLED=1"}, nil},
		"external": {[]string{"CGO_ENABLED=1"}, []string{"-ldflags=-linkmode=external"}},
		"pie":      {[]string{"CGO_ENABLED=1"}, []string{"-buildmode=pie"}},
		"race":     {[]string{"CGO_ENABLED=1"}, []string{"-race"}},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "external" || name == "race" {
				if _, err := exec.LookPath("gcc"); err != nil {
					t.Skip("needs gcc")
				}
			}
			behaves(t, berthBy(t, c.env, c.flags))
		})
	}
}

// Where a C compiler is installed CGO_ENABLED is 1, and go build links the C library as soon as a
// package asks for it: which costs berth and the shim their confinement, and a millisecond a run.
func TestPlainBuildIsStatic(t *testing.T) {
	dir := t.TempDir()
	mustGo(t, top(t), []string{"CGO_ENABLED=1"}, "build", "-trimpath", "-o", dir+"/", "./cmd/berth", "./cmd/containerd-shim-berth-v2")
	// berth-node imports net, which has another way to do without (docs/decisions/entry.md).
	mustGo(t, top(t), []string{"CGO_ENABLED=1"}, "build", "-trimpath", "-tags=netgo", "-o", dir+"/", "./cmd/berth-node")
	for _, name := range []string{"berth", "containerd-shim-berth-v2", "berth-node"} {
		f, err := elf.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range f.Progs {
			if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
				t.Errorf("%s has a %s", name, p.Type)
			}
		}
		f.Close()
	}
}

// A build of ours says what it is: the commit, dirty or not, the entry and the shorter start.
func TestBuildSaysWhatItIs(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	clone := filepath.Join(t.TempDir(), "clone")
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "safe.directory=*", "-c", "user.name=t", "-c", "user.email=t@t"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Skipf("git %q: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("clone", "-q", "--depth", "1", "file://"+top(t), clone)
	commit := git("-C", clone, "rev-parse", "HEAD")
	tell := func() (version, noted string) {
		t.Helper()
		build := exec.Command(filepath.Join(clone, "build/scripts/build"), "bin", "-trimpath")
		build.Dir = clone
		build.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		out, err := exec.Command(filepath.Join(clone, "bin/berth"), "version").Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out), mustGo(t, clone, nil, "version", "-m", "bin/berth")
	}
	version, noted := tell()
	for _, want := range []string{"\ncommit: " + commit + "\n", "an entry point of its own", "a shorter start of Go's runtime"} {
		if !strings.Contains(version, want) {
			t.Errorf("berth version has no %q:\n%s", want, version)
		}
	}
	for _, want := range []string{"vcs.revision=" + commit, "vcs.modified=false", "-tags=berth_entry,berth_runtime"} {
		if !strings.Contains(noted, want) {
			t.Errorf("go version -m has no %q:\n%s", want, noted)
		}
	}
	if out, err := exec.Command(filepath.Join(clone, "build/scripts/sbom"), clone, filepath.Join(clone, "bin/berth")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	sbom, err := os.ReadFile(filepath.Join(clone, "berth.spdx.json"))
	if want := "commit " + commit + ", build tags berth_entry,berth_runtime"; err != nil || !strings.Contains(string(sbom), want) {
		t.Errorf("the SBOM has no %q (%v)", want, err)
	}
	if err := os.WriteFile(filepath.Join(clone, "README.md"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if version, _ := tell(); !strings.Contains(version, "\ncommit: "+commit+"-dirty\n") {
		t.Errorf("of a changed tree berth version says:\n%s", version)
	}
}
