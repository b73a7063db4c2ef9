package entry_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// told is what testdata/told says.
type told struct {
	Args, Env               []string
	Procs, Page, Threads    int
	Main                    bool
	Slack, Restored, Handed uint64
}

// build makes that program for a machine, as it is released or as a go build without flags would.
func build(t *testing.T, arch string, released bool) string {
	t.Helper()
	// go test keeps a result until a file changes that the test has looked at.
	for _, file := range []string{"entry_" + arch + ".s", "testdata/told/main.go", "../../../build/scripts/overlay"} {
		if _, err := os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "told-"+arch)
	words := []string{"build", "-trimpath", "-o", path}
	env := append(os.Environ(), "GOARCH="+arch, "CGO_ENABLED=0")
	if released {
		overlay, err := exec.Command("../../../build/scripts/overlay", t.TempDir()).Output()
		if err != nil {
			t.Fatal("build/scripts/overlay: ", err)
		}
		words = append(words, "-ldflags=-E=berth_entry")
		env = append(env, strings.Split(strings.TrimSpace(string(overlay)), "\n")...)
	}
	cmd := exec.Command("go", append(words, "./testdata/told")...)
	cmd.Env = env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build for %s: %v\n%s", arch, err, out)
	}
	return path
}

// ask runs it, on a thread with a timer slack that nobody else has.
func ask(t *testing.T, runner []string, path string, args, env []string) told {
	t.Helper()
	words := append(slices.Clone(runner), path)
	cmd := exec.Command(words[0], append(words[1:], args...)...)
	cmd.Env = append([]string{}, env...)
	runtime.LockOSThread() // never unlocked: the thread ends with the test
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, callers, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", words, err, out)
	}
	var answer told
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatalf("%v: %q", err, out)
	}
	return answer
}

const callers = 70000

func TestEntry(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no compiler for the program of this test: ", err)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		t.Run(arch, func(t *testing.T) {
			var runner []string
			if arch != runtime.GOARCH {
				emulator := map[string]string{"amd64": "qemu-x86_64-static", "arm64": "qemu-aarch64-static"}[arch]
				path, err := exec.LookPath(emulator)
				if err != nil {
					t.Skip("no emulator for it (Debian package qemu-user-static): ", err)
				}
				runner = []string{path}
			}
			path := build(t, arch, true)
			check(t, runner, path)
			// An emulator has threads of its own.
			if runner == nil {
				checkThreads(t, path)
			}
		})
	}
}

func check(t *testing.T, runner []string, path string) {
	many := slices.Repeat([]string{"", "an argument", "-x"}, 100)
	for _, c := range []struct {
		name      string
		args, env []string
		procs     int
	}{
		{"nothing", nil, nil, 1},
		{"an even number of words", []string{"a"}, []string{"A=1", "B=2"}, 1},
		{"an odd number of words", []string{"a"}, []string{"A=1", "B=", "C=3"}, 1},
		{"many", many, []string{"A=1", "LONG=" + strings.Repeat("x", 100_000)}, 1},
		{"the caller's own number", nil, []string{"GOMAXPROCS=3", "A=1"}, 3},
		{"the caller's own among others", nil, []string{"A=1", "GOMAXPROCS=2", "B=1"}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ask(t, runner, path, c.args, c.env)
			if !slices.Equal(got.Args[1:], c.args) {
				t.Errorf("arguments %q, want %q", got.Args[1:], c.args)
			}
			if slices.Sort(got.Env); !slices.Equal(got.Env, slices.Sorted(slices.Values(c.env))) {
				t.Errorf("environment %q, want %q", got.Env, c.env)
			}
			if got.Procs != c.procs {
				t.Errorf("GOMAXPROCS %d, want %d", got.Procs, c.procs)
			}
			// The auxiliary vector comes behind the environment, and was not moved.
			if got.Page != os.Getpagesize() {
				t.Errorf("page size %d, want %d", got.Page, os.Getpagesize())
			}
			if !got.Main {
				t.Error("packages are initialised outside the main thread")
			}
			if got.Slack != callers || got.Restored != callers || got.Handed != callers {
				t.Errorf("timer slack %d, restored %d, and %d to hand on, want the caller's %d", got.Slack, got.Restored, got.Handed, callers)
			}
		})
	}
}

// Go makes one thread beside the main one, which watches. A loaded machine may need another, but
// not each time.
func checkThreads(t *testing.T, path string) {
	var counts []int
	for range 20 {
		got := ask(t, nil, path, nil, nil)
		if got.Threads == 2 {
			return
		}
		counts = append(counts, got.Threads)
	}
	t.Errorf("threads at the first initialisation: %v, want 2; does build/scripts/overlay know this Go?", counts)
}

// Without the flags nothing is different from other programs.
func TestOtherEntry(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no compiler for the program of this test: ", err)
	}
	got := ask(t, nil, build(t, runtime.GOARCH, false), []string{"a"}, []string{"GOMAXPROCS=001"})
	if got.Slack != callers || got.Handed != 0 || !slices.Equal(got.Env, []string{"GOMAXPROCS=001"}) {
		t.Errorf("%+v", got)
	}
}

// Go may have fetched its toolchain by itself, into the module cache, where no overlay may replace
// a file: on Debian 13 that is how the Go of go.mod is had.
func TestBuildWithFetchedToolchain(t *testing.T) {
	overlay, err := filepath.Abs("../../../build/scripts/overlay")
	if err != nil {
		t.Fatal(err)
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skip("no compiler for the program of this test: ", err)
	}
	// The module cache as it is, but said to be where this toolchain lies.
	temp := t.TempDir()
	cmd := exec.Command(overlay, temp)
	cmd.Env = append(os.Environ(), "GOMODCACHE="+filepath.Dir(strings.TrimSpace(string(goroot))))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal("build/scripts/overlay: ", err)
	}
	variables := strings.Split(strings.TrimSpace(string(out)), "\n")
	if !slices.Contains(variables, "GOROOT="+temp+"/goroot") {
		t.Fatalf("the toolchain is used from the module cache: %q", variables)
	}
	program := filepath.Join(temp, "told")
	cmd = exec.Command("go", "build", "-trimpath", "-ldflags=-E=berth_entry", "-o", program, "./testdata/told")
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0"), variables...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	check(t, nil, program)
	checkThreads(t, program)
}
