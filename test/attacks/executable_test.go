package attacks

import (
	"crypto/sha256"
	"os"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// fileSum is the content of a file and its time of change.
func fileSum(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	check(t, err)
	info, err := os.Stat(path)
	check(t, err)
	sum := sha256.Sum256(data)
	return string(sum[:]) + info.ModTime().String() + info.Mode().String()
}

// CVE-2019-5736: the container gets hold of what the runtime executes, by /proc/PID/exe of a
// process that enters it, and overwrites it. Processes in the container try that on all pids, while
// the runtime enters it again and again.
func TestOverwriteTheRuntime(t *testing.T) {
	b := harness.New(t)
	// A copy, or a success would be the end of all the other tests, too.
	engine := b.Path("engine")
	program, err := os.ReadFile(harness.Engine(t))
	check(t, err)
	check(t, os.WriteFile(engine, program, 0o755))
	kept := fileSum(t, engine)
	c := b.Container("/bin/sh", "-c", `
		while :; do
			for exe in /proc/[0-9]*/exe; do
				case $(readlink $exe) in
				""|/bin/busybox|/inside) ;;
				*) readlink $exe >> /seen
				   # Opened for reading it outlives its process; then it is not busy any more.
				   exec 7< $exe; sleep 0.01; echo overwritten > /proc/self/fd/7; echo overwritten > $exe; exec 7<&-
				esac
			done
		done 2> /dev/null`).RunDetached()
	const rounds = 60
	enter := func(words ...string) harness.Result {
		cmd := c.Command("exec", nil, words...)
		cmd.Binary = engine
		r := cmd.Run()
		// While it is open for writing, the next start of it ends the test: "text file busy".
		if fileSum(t, engine) != kept {
			t.Fatal("the runtime was overwritten")
		}
		return r
	}
	for range rounds {
		enter("/bin/true").OK(t)
	}
	// Lured to execute itself again, it is the init that is executed, and holds nothing.
	for _, program := range []string{"/proc/self/exe", "/evil"} {
		link(c, "evil", "/proc/self/exe")
		if r := enter(program, "delete", "--force", c.ID); r.Code == 0 {
			t.Errorf("%s was executed: %q", program, r.Stdout)
		}
	}
	c.Delete("--force")
	c.WaitExit()
	if seen, err := os.ReadFile(c.Path("seen")); err == nil {
		for _, line := range (harness.Result{Stdout: string(seen)}).Lines() {
			if line != "/memfd:berth-init (deleted)" && line != "/proc/self/exe" {
				t.Errorf("the container saw %q as the program of a process that entered it", line)
			}
		}
		t.Logf("%d times the container found the init of an exec", len((harness.Result{Stdout: string(seen)}).Lines()))
	}
	harness.Report(t, "attacks", rounds+2)
}

// The same at the creation: the image's program is a link to the runtime.
func TestProgramIsTheRuntime(t *testing.T) {
	b := harness.New(t)
	engine := fileSum(t, harness.Engine(t))
	c := b.Container("/evil")
	for _, target := range []string{"/proc/self/exe", "/proc/1/exe", "/proc/thread-self/exe"} {
		link(c, "evil", target)
		if r := c.Run(); r.Code == 0 {
			t.Errorf("%s was executed: %q", target, r.Stdout)
		}
	}
	if fileSum(t, harness.Engine(t)) != engine {
		t.Error("the runtime was overwritten")
	}
	harness.Report(t, "attacks", 3)
}
