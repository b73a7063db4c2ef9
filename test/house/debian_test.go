package house

import (
	"go/version"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// debians is the Go of Debian 13, by which the README's commands are to work.
const debians = "go1.24.4"

func TestDebiansGoIsEnough(t *testing.T) {
	mod := readMod(t, top(t))
	if version.Compare("go"+mod.Go, debians) > 0 {
		t.Errorf("go.mod asks for Go %s, and Debian 13 has %s: its libraries could not be imported there", mod.Go, debians)
	}
	// What is tested and released is built by this one, which Debian's fetches.
	if mod.Toolchain == "" || version.Compare(mod.Toolchain, debians) < 0 {
		t.Errorf("go.mod names the toolchain %q", mod.Toolchain)
	}
}

// A Go that is too old to read go.mod, or none, is answered in one line that says what to do.
func TestMakeSaysWhichGo(t *testing.T) {
	for _, test := range []struct {
		name, go_, toolchain, want string
	}{
		{name: "Debian 12's", go_: "1.19.8", want: "this is Go 1.19, and building Berth takes Go 1.24 or later: install it as https://go.dev/doc/install says"},
		{name: "none", want: "there is no go command in the PATH, and building Berth takes Go 1.24 or later"},
		{name: "one that may fetch no other", go_: "1.23.1", toolchain: "local", want: "this is Go 1.23"},
		{name: "one that fetches another", go_: "1.21.0", toolchain: "auto"},
		{name: "Debian 13's", go_: "1.24.4", toolchain: "local"},
		{name: "a later one", go_: "1.100", toolchain: "local"},
	} {
		t.Run(test.name, func(t *testing.T) {
			bin := t.TempDir()
			for _, tool := range []string{"bash", "dirname", "sed", "sort", "head", "make"} {
				at, err := exec.LookPath(tool)
				if err != nil {
					t.Skipf("make's way needs %s: %v", tool, err)
				}
				if err := os.Symlink(at, filepath.Join(bin, tool)); err != nil {
					t.Fatal(err)
				}
			}
			if test.go_ != "" {
				fake := "#!" + filepath.Join(bin, "bash") + "\ncase $1 in version) echo go version go" + test.go_ + " linux/amd64 ;; env) echo " + test.toolchain + " ;; esac\n"
				if err := os.WriteFile(filepath.Join(bin, "go"), []byte(fake), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			// Of each target that calls go, only what comes before it.
			cmd := exec.Command(filepath.Join(bin, "make"), "-s", "go")
			if test.want != "" {
				cmd.Args = []string{"make", "-s", "build", "test", "lint", "-k"}
			}
			cmd.Dir, cmd.Env = top(t), []string{"PATH=" + bin}
			out, err := cmd.CombinedOutput()
			var said []string
			for line := range strings.Lines(string(out)) {
				if !strings.HasPrefix(line, "make: ") { // its own word about the failure
					said = append(said, line)
				}
			}
			if test.want == "" && (err != nil || len(said) > 0) || test.want != "" && (err == nil || len(said) != 1 || !strings.HasPrefix(said[0], test.want)) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
