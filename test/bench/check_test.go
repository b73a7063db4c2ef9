package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/engine/compile"
	"github.com/berth-runtime/berth/engine/host"
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/spec"
	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/seccomp"
	"github.com/berth-runtime/berth/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

//go:embed limits.txt
var limitsText string

// limit reads how much of something there may be at most.
func limit(t *testing.T, name string) int {
	t.Helper()
	for line := range strings.Lines(limitsText) {
		line, _, _ = strings.Cut(line, "#")
		if n, text, ok := strings.Cut(strings.TrimSpace(line), " "); ok && text == name {
			most, err := strconv.Atoi(n)
			if err != nil {
				t.Fatal(err)
			}
			return most
		}
	}
	t.Fatalf("limits.txt has nothing for %q", name)
	return 0
}

func within(t *testing.T, name string, count int) {
	t.Helper()
	switch most := limit(t, name); {
	case count > most:
		t.Errorf("%s: %d, where limits.txt allows %d. Find out what they are for; where they are worth it, raise the limit in the same change", name, count, most)
	case count < most*9/10:
		t.Logf("%s: %d, far below the %d of limits.txt: lower that, so that it stays so", name, count, most)
	default:
		t.Logf("%s: %d of at most %d", name, count, most)
	}
}

// TestAllocations counts what the pure parts of a start allocate.
func TestAllocations(t *testing.T) {
	b := &bench{dir: "/bundle", cgroup: "bench"}
	config, err := json.Marshal(b.spec(full, "/bin/true"))
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := spec.ParseChecked(config)
	if err != nil {
		t.Fatal(err)
	}
	h := &host.Host{Layout: ledger.Layout{Unified: []string{"cpu", "memory", "pids"}}}
	p, err := plan.New(s, h, plan.Options{ID: "demo", Bundle: "/bundle"})
	if err != nil {
		t.Fatal(err)
	}
	facts := func() *compile.Facts {
		return &compile.Facts{Report: 3, Gate: 4, LastCap: 40, OpenFiles: 1024, Sources: make([]compile.Source, len(p.Mounts)),
			CgroupDirs: []compile.CgroupDir{{Path: "/sys/fs/cgroup/demo"}}}
	}
	code, err := compile.Container(p, facts())
	if err != nil {
		t.Fatal(err)
	}
	profile := seccomp.Default()
	for name, f := range map[string]func() error{
		"allocations: check config": func() error {
			_, _, err := spec.ParseChecked(config)
			return err
		},
		"allocations: plan": func() error {
			_, err := plan.New(s, h, plan.Options{ID: "demo", Bundle: "/bundle"})
			return err
		},
		"allocations: compile": func() error {
			_, err := compile.Container(p, facts())
			return err
		},
		"allocations: image": func() error {
			_, err := code.Image()
			return err
		},
		"allocations: compile seccomp": func() error {
			_, err := seccomp.Compile(profile)
			return err
		},
	} {
		var failed error
		within(t, name, int(testing.AllocsPerRun(5, func() { failed = f() })))
		if failed != nil {
			t.Errorf("%s: %v", name, failed)
		}
	}
}

// scheduler are the calls by which Go makes threads, and by which these wait for
// each other and wake each other, and the one by which the engine waits for its
// children: how many there are is a matter of the machine's mood.
var scheduler = regexp.MustCompile(`^(ppoll|futex|nanosleep|sched_yield|tgkill|getpid|rt_sigreturn|epoll_pwait|restart_syscall|clone|gettid|sigaltstack|rt_sigprocmask|mmap|madvise)$`)

// TestSystemCalls counts the system calls of commands, those of the container's
// process up to and with /bin/true included.
func TestSystemCalls(t *testing.T) {
	strace := harness.NeedTool(t, "strace", "strace")
	b := harness.New(t)
	if n := len(harness.Hierarchies(t)); n < 5 || n > 10 {
		harness.Skip(t, "the numbers are for cgroup v1 with ten hierarchies, here are %d", n)
	}
	calls := func(name string, call *harness.Command, flags ...string) int {
		t.Helper()
		// -ff: a file for each thread, so that their lines don't mix.
		out := b.Path("trace-" + strings.ReplaceAll(name, " ", "-"))
		call.Wrap = append([]string{strace, "-ff", "-qq", "-o", out}, flags...)
		call.Run().OK(t)
		files, err := filepath.Glob(out + ".*")
		if err != nil {
			t.Fatal(err)
		}
		return callsIn(t, files)
	}
	count := func(name string, call *harness.Command, flags ...string) {
		t.Helper()
		within(t, name, calls(name, call, flags...))
	}
	c := b.Container("/bin/true")
	c.Spec.Linux.Resources = nil
	count("system calls: run", c.Command("run", nil))
	c = b.Container("/bin/sleep", "1000")
	// The container's process stays, so it is left alone from its execve on.
	count("system calls: create", c.Command("create", []string{"--pid-file", b.Path("pid")}), "-b", "execve")
	pid, err := pidIn(b.Path("pid"))
	if err != nil {
		t.Fatal(err)
	}
	c.PID = pid
	count("system calls: state", c.Command("state", nil))
	count("system calls: start", c.Command("start", nil))
	count("system calls: exec", c.Command("exec", nil, "/bin/true"))
	alone := calls("list of one", b.Command("list"))
	const more = 4
	var others []*harness.Container
	for range more {
		other := b.Container("/bin/sleep", "1000")
		other.RunDetached()
		others = append(others, other)
	}
	within(t, "system calls: list, each container", (calls("list of more", b.Command("list"))-alone)/more)
	for _, other := range others {
		other.Delete("--force")
		other.WaitExit()
	}
	countKillAll(t, b, calls)
	count("system calls: kill", c.Command("kill", nil, "KILL"))
	c.WaitExit() // else it would be a matter of the machine's mood whether delete waits
	count("system calls: delete", c.Command("delete", []string{"--force"}))
}

// countKillAll counts what a signal to many processes takes: a descriptor of each, and few looks at
// which there are.
func countKillAll(t *testing.T, b *harness.Box, calls func(string, *harness.Command, ...string) int) {
	t.Helper()
	const processes = 600
	c := b.Container("/bin/sh", "-c", fmt.Sprintf("i=1; while [ $i -lt %d ]; do sleep 1000 & i=$((i+1)); done; wait", processes))
	c.RunDetached()
	procs := filepath.Join(harness.Hierarchies(t)[0].Dir, c.Spec.Linux.CgroupsPath, "cgroup.procs")
	wait.Until(t, "the container has all of its processes", func() bool {
		text, _ := os.ReadFile(procs)
		return strings.Count(string(text), "\n") == processes
	})
	within(t, "system calls: kill --all of 600 processes", calls("kill --all", c.Command("kill", []string{"--all"}, "TERM")))
	c.Delete("--force")
	c.WaitExit()
}

var callLine = regexp.MustCompile(`^([a-z0-9_]+)\(`)

func callsIn(t *testing.T, files []string) int {
	t.Helper()
	n := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if m := callLine.FindStringSubmatch(line); m != nil && !scheduler.MatchString(m[1]) {
				n++
			}
		}
	}
	return n
}
