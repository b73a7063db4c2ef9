package house

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/berth-runtime/berth"

// top is the directory of the repository.
func top(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// goCommand runs go in a directory, outside of any workspace, with more environment.
func goCommand(t *testing.T, dir string, env []string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false"), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func mustGo(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	out, err := goCommand(t, dir, env, args...)
	if err != nil {
		skipWithoutNetwork(t, out)
		t.Fatalf("%q go %q: %v\n%s", env, args, err, out)
	}
	return out
}

func skipWithoutNetwork(t *testing.T, out string) {
	t.Helper()
	for _, words := range []string{"no such host", "Forbidden", "dial tcp", "i/o timeout", "proxyconnect", "toolchain not available", "module lookup disabled"} {
		if strings.Contains(out, words) {
			t.Skipf("needs what the go command can't fetch here: %s", out)
		}
	}
}

type modFile struct {
	Go        string
	Toolchain string
	Require   []struct {
		Path, Version string
		Indirect      bool
	}
}

func readMod(t *testing.T, dir string) modFile {
	t.Helper()
	var f modFile
	if err := json.Unmarshal([]byte(mustGo(t, dir, nil, "mod", "edit", "-json")), &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// uses makes a module of a stranger's that imports packages of ours.
func uses(t *testing.T, packages ...string) string {
	t.Helper()
	dir := t.TempDir()
	source := "package user\n"
	for _, p := range packages {
		source += "\nimport _ \"" + module + "/" + p + "\"\n"
	}
	mod := "module example.invalid/user\n\ngo " + readMod(t, top(t)).Go + "\n\nrequire " + module + " v0.0.0\n\nreplace " + module + " => " + top(t) + "\n"
	for name, text := range map[string]string{"user.go": source, "go.mod": mod} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// With a library comes what the library needs, and neither our oracles nor our tools.
func TestLibrariesBringTwoRequirements(t *testing.T) {
	for _, library := range []string{"cgroup", "seccomp"} {
		t.Run(library, func(t *testing.T) {
			dir := uses(t, library)
			mustGo(t, dir, nil, "mod", "tidy")
			var got []string
			for _, r := range readMod(t, dir).Require {
				got = append(got, r.Path)
			}
			slices.Sort(got)
			want := []string{module, "github.com/opencontainers/runtime-spec", "golang.org/x/sys"}
			if !slices.Equal(got, want) {
				t.Errorf("its go.mod asks for %q, want %q", got, want)
			}
			mustGo(t, dir, nil, "build", "./...")
			// Nothing else takes part in the choice of versions either.
			for line := range strings.Lines(mustGo(t, dir, nil, "list", "-m", "all")) {
				path := strings.Fields(line)[0]
				if path != "example.invalid/user" && !slices.Contains(want, path) && !ofNode(path) {
					t.Errorf("%s is in the build list", path)
				}
			}
		})
	}
}

// ofNode says that a module is there for what berth-node reads.
func ofNode(path string) bool {
	return path == "go.yaml.in/yaml/v3" || path == "github.com/pelletier/go-toml/v2"
}

// The programs ship what go.mod names, which is no more than docs/dependencies.md has a line for;
// and the bills of materials and the packages name the licence of each.
func TestRequirementsAreExplained(t *testing.T) {
	for file, line := range map[string]string{
		"docs/dependencies.md":      "| `%s` |",
		"build/scripts/sbom":        `licences["%s"] = `,
		"build/packaging/copyright": " vendor/%s/*",
	} {
		text, err := os.ReadFile(filepath.Join(top(t), file))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range readMod(t, top(t)).Require {
			if !strings.Contains(string(text), fmt.Sprintf(line, r.Path)) {
				t.Errorf("%s says nothing of %s", file, r.Path)
			}
		}
	}
}

// Everything builds with the oldest Go that go.mod allows: what the libraries need, and the
// programs.
func TestOldestGo(t *testing.T) {
	if testing.Short() {
		t.Skip("building everything with another toolchain is not short")
	}
	oldest := readMod(t, top(t)).Go
	mustGo(t, top(t), []string{"GOTOOLCHAIN=go" + oldest, "CGO_ENABLED=0"}, "build", "-trimpath", "./...")
	// The tests beside the code are to compile as well.
	mustGo(t, top(t), []string{"GOTOOLCHAIN=go" + oldest, "CGO_ENABLED=0"}, "test", "-trimpath", "-run", "^$", "./cgroup/...", "./seccomp/...")
}

// What go.work chooses is what go.mod chooses, so that what is tested is what is released.
func TestWorkspaceChoosesTheSame(t *testing.T) {
	for _, r := range readMod(t, top(t)).Require {
		cmd := exec.Command("go", "list", "-m", "-f", "{{with .Replace}}{{.Version}}{{else}}{{.Version}}{{end}}", r.Path)
		cmd.Dir = top(t)
		cmd.Env = append(os.Environ(), "GOWORK="+filepath.Join(top(t), "go.work"))
		out, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != r.Version {
			t.Errorf("%s is %s in the workspace, and %s without (%v)", r.Path, got, r.Version, err)
		}
	}
}
