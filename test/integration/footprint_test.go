package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

// What a container's first process is before start: small, and nothing of the engine or the host.
func TestInitIsSmall(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true").Create()
	info, err := os.Stat(procPath(c.PID, "exe"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() >= 64<<10 {
		t.Errorf("the init's image has %d bytes", info.Size())
	}
	if info.Mode().Perm()&0o222 != 0 {
		// A sealed memfd can't be written whatever its mode says.
		if f, err := os.OpenFile(procPath(c.PID, "exe"), os.O_WRONLY, 0); err == nil {
			f.Close()
			t.Error("the init's image can be opened for writing")
		}
	}
	if kib := pss(t, c.PID); kib >= 200 {
		t.Errorf("the init holds %d KiB", kib)
	}
}

func pss(t *testing.T, pid int) int {
	t.Helper()
	rollup := readFile(t, procPath(pid, "smaps_rollup"))
	kib, err := strconv.Atoi(strings.TrimSuffix(statusField(rollup, "Pss"), " kB"))
	if err != nil {
		t.Fatal(err)
	}
	return kib
}

func TestSmallMemoryLimit(t *testing.T) {
	h := harness.Controller(t, "memory")
	if h.Unified {
		harness.Skip(t, "needs the memory controller of cgroup v1")
	}
	b := harness.New(t)
	c := b.Container("/bin/true")
	c.Spec.Linux.Resources.Memory = &specs.LinuxMemory{Limit: ptr(int64(512 << 10))}
	c.Run().OK(t)
}

var (
	execLine  = regexp.MustCompile(`^(?:execve|execveat)\((.*)\) += 0$`)
	sleepLine = regexp.MustCompile(`nanosleep\(.*\{tv_sec=(\d+), tv_nsec=(\d+)\}, `)
)

// A container's start is the engine, the init's image, and the user's program: no second run of the
// engine, and no waiting by sleeping.
func TestStartUnderStrace(t *testing.T) {
	strace := harness.NeedTool(t, "strace", "strace")
	b := harness.New(t)
	c := b.Container("/bin/true")
	cmd := c.Command("run", nil)
	// -ff: a file for each thread, so that their lines don't mix.
	cmd.Wrap = []string{strace, "-ff", "-qq", "-o", b.Path("trace"), "-e", "trace=execve,execveat,nanosleep,clock_nanosleep"}
	cmd.Run().OK(t)
	traces, err := filepath.Glob(b.Path("trace.*"))
	if err != nil {
		t.Fatal(err)
	}
	programs := map[int][]string{}
	for _, trace := range traces {
		var execs []string
		for _, line := range strings.Split(readFile(t, trace), "\n") {
			if m := execLine.FindStringSubmatch(line); m != nil {
				execs = append(execs, m[1])
			}
			if m := sleepLine.FindStringSubmatch(line); m != nil {
				checkSleep(t, line, m[1], m[2])
			}
		}
		programs[len(execs)] = append(programs[len(execs)], execs...)
	}
	if len(programs[1]) != 1 || !strings.Contains(programs[1][0], harness.Engine(t)) {
		t.Errorf("processes that executed one program, want the engine alone:\n%s", strings.Join(programs[1], "\n"))
	}
	if len(programs[2]) != 2 || !strings.Contains(programs[2][1], "/bin/true") {
		t.Errorf("processes that executed two programs, want the container's first alone:\n%s", strings.Join(programs[2], "\n"))
	}
	for n, execs := range programs {
		if n > 2 {
			t.Errorf("a process executed %d programs:\n%s", n, strings.Join(execs, "\n"))
		}
	}
	for _, exec := range programs[2] {
		if strings.Contains(exec, harness.Engine(t)) || strings.Contains(exec, "/proc/self/exe") {
			t.Errorf("the engine is executed again: %s", exec)
		}
	}
}

// checkSleep allows what the scheduler of each Go program does: its threads doze for up to 10 ms
// when there is nothing to run. time.Sleep is none of these calls; whatever sleeps longer by them
// does so on purpose.
func checkSleep(t *testing.T, line, seconds, nanoseconds string) {
	t.Helper()
	ns, err := strconv.Atoi(nanoseconds)
	if err != nil {
		t.Fatal(err)
	}
	if seconds != "0" || ns > 10_000_000 {
		t.Errorf("something sleeps: %s", line)
	}
}

// As little as it is, it is the same however many mounts the config has: the init keeps no
// descriptor for each.
func TestManyMounts(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/sh", "-c", "cat /proc/self/mountinfo | wc -l")
	for i := range 400 {
		c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: fmt.Sprintf("/many/%d", i), Type: "tmpfs", Source: "tmpfs"})
	}
	for i := range 400 {
		c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: fmt.Sprintf("/bound/%d", i), Type: "bind", Source: c.Path("etc"), Options: []string{"bind", "ro"}})
	}
	cmd := c.Command("run", nil)
	cmd.Wrap = []string{"/bin/sh", "-c", `ulimit -n 256 && exec "$0" "$@"`}
	n, err := strconv.Atoi(strings.TrimSpace(cmd.Run().OK(t).Stdout))
	if err != nil || n < 800 {
		t.Errorf("%d mounts (%v)", n, err)
	}
}
