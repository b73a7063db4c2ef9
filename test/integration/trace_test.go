package integration

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

// traceEvent is one bar of a trace's timeline. Times are microseconds.
type traceEvent struct {
	Ph, Name string
	Tid      int
	TS, Dur  float64
	Args     struct{ For, Config string }
}

func (e *traceEvent) end() float64 { return e.TS + e.Dur }

// trace reads a trace, and checks what is true of each: the first bar is the whole, phases lie one
// in the other, and calls one behind the other inside the whole.
func trace(t *testing.T, file string) (phases, calls []traceEvent) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ TraceEvents []traceEvent }
	harness.Decode(t, string(text), &got)
	for _, e := range got.TraceEvents {
		switch {
		case e.Ph == "X" && e.Tid == 1:
			phases = append(phases, e)
		case e.Ph == "X":
			calls = append(calls, e)
		}
	}
	if len(phases) < 2 {
		t.Fatalf("no phases: %s", text)
	}
	const rounding = 0.01
	var around []traceEvent
	sums := make([]float64, len(phases))
	for _, p := range phases {
		for len(around) > 0 && p.TS >= around[len(around)-1].end()-rounding {
			around = around[:len(around)-1]
		}
		if len(around) == 0 && p.TS > 0 {
			t.Fatalf("%+v is outside of the whole", p)
		}
		if n := len(around); n > 0 {
			if outer := around[n-1]; p.TS < outer.TS-rounding || p.end() > outer.end()+rounding {
				t.Errorf("%+v is not inside of %+v", p, outer)
			}
			sums[n-1] += p.Dur
			if sums[n-1] > around[n-1].Dur+rounding*float64(len(phases)) {
				t.Errorf("the parts of %+v take longer than it: %v", around[n-1], sums[n-1])
			}
		}
		around = append(around, p)
		sums[len(around)-1] = 0
	}
	sum := 0.0
	for i, c := range calls {
		if c.Dur < 0 || i > 0 && c.TS < calls[i-1].end()-rounding {
			t.Errorf("%+v comes before %+v ends", c, calls[i-1])
		}
		sum += c.Dur
	}
	if n := len(calls); n > 0 {
		// The clock of the day may be put right while this runs; a little is nothing.
		const clocks = 1000
		if calls[0].TS < -clocks || calls[n-1].end() > phases[0].end()+clocks {
			t.Errorf("calls from %+v to %+v, in a whole of %+v", calls[0], calls[n-1], phases[0])
		}
		if span := calls[n-1].end() - calls[0].TS; span-sum > 1 || sum-span > 1 {
			t.Errorf("the calls take %v together, from the first to the last it is %v", sum, span)
		}
	}
	return phases, calls
}

func hasPhases(t *testing.T, phases []traceEvent, names ...string) {
	t.Helper()
	for _, name := range names {
		if !slices.ContainsFunc(phases, func(e traceEvent) bool { return e.Name == name }) {
			t.Errorf("no phase %q in %+v", name, phases)
		}
	}
}

func hasCall(t *testing.T, calls []traceEvent, name, config string) {
	t.Helper()
	if !slices.ContainsFunc(calls, func(e traceEvent) bool { return e.Name == name && e.Args.Config == config && e.Args.For != "" }) {
		t.Errorf("no call %s for %s among %d", name, config, len(calls))
	}
}

// globally puts a global option before a command.
func globally(c *harness.Command, options ...string) *harness.Command {
	c.Args = append(options, c.Args...)
	return c
}

func TestTraceOfRun(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true")
	globally(c.Command("run", nil), "--trace", b.Path("run")).Run().OK(t)
	phases, calls := trace(t, b.Path("run.json"))
	hasPhases(t, phases, "create", "plan", "compile the Program", "serve the init until it is ready", "let it execute its program", "the program runs", "delete")
	hasCall(t, calls, "move_mount", "/mounts/0")
	// The other half of what the name asks for.
	picture, err := os.Open(b.Path("run.svg"))
	if err != nil {
		t.Fatal(err)
	}
	defer picture.Close()
	d := xml.NewDecoder(picture)
	bars := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "g" {
			bars++
		}
	}
	if bars != len(phases)+len(calls) {
		t.Errorf("%d bars for %d phases and %d calls", bars, len(phases), len(calls))
	}
}

func TestTraceOfCommands(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "hang")
	c.Spec.Hostname = "traced"
	file := b.Path("trace.json")
	of := func(verb string, flags []string, words ...string) (phases, calls []traceEvent) {
		t.Helper()
		globally(c.Command(verb, flags, words...), "--trace", file).Run().OK(t)
		return trace(t, file)
	}
	phases, calls := of("create", nil)
	hasPhases(t, phases, "create", "record the container")
	hasCall(t, calls, "sethostname", "/hostname")
	c.PID = c.State().Pid
	phases, _ = of("start", nil)
	hasPhases(t, phases, "start", "pass the gate")
	phases, calls = of("exec", nil, "/bin/true")
	hasPhases(t, phases, "exec", "serve the init until it executes the program")
	hasCall(t, calls, "chdir", "/process/cwd")
	c.Kill("KILL").WaitExit()
	phases, _ = of("delete", nil)
	hasPhases(t, phases, "delete", "remove the cgroup")
}

// In a time namespace the monotonic clock is another one.
func TestTraceInTimeNamespace(t *testing.T) {
	harness.NeedNamespace(t, "time")
	b := harness.New(t)
	c := b.Container("/bin/true")
	c.Spec.Linux.Namespaces = append(c.Spec.Linux.Namespaces, specs.LinuxNamespace{Type: specs.TimeNamespace})
	c.Spec.Linux.TimeOffsets = map[string]specs.LinuxTimeOffset{"monotonic": {Secs: 86400}, "boottime": {Secs: 86400}}
	globally(c.Command("run", nil), "--trace", b.Path("trace.json")).Run().OK(t)
	if _, calls := trace(t, b.Path("trace.json")); len(calls) == 0 {
		t.Error("no calls")
	}
}

// What failed is what one wants to see.
func TestTraceOfFailure(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/no/such/program")
	globally(c.Command("run", nil), "--trace", b.Path("trace.json")).Run().Fails(t, "no such file or directory")
	phases, _ := trace(t, b.Path("trace.json"))
	hasPhases(t, phases, "serve the init until it is ready")
	b.Berth("--trace", "/no/such/folder/trace.json", "list").Fails(t, "--trace", "no such file or directory")
	b.Berth("--trace", "", "list").Fails(t, "--trace", "name of a file")
}

// By a seccomp filter that kills who asks for the time.
func TestTraceUnderSeccomp(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true")
	c.Spec.Linux.Seccomp = &specs.LinuxSeccomp{
		DefaultAction: specs.ActAllow,
		Syscalls:      []specs.LinuxSyscall{{Names: []string{"clock_gettime"}, Action: specs.ActKillProcess}},
	}
	globally(c.Command("run", nil), "--trace", b.Path("trace.json")).Run().OK(t)
	if _, calls := trace(t, b.Path("trace.json")); len(calls) == 0 {
		t.Error("no calls")
	}
}

// An ordinary user's traces know the calls as well.
func TestTraceOfOrdinaryUser(t *testing.T) {
	b := harness.New(t)
	u := b.AsOrdinaryUser(t, 0)
	c := u.Container("/bin/true")
	globally(c.Command("run", nil), "--trace", b.Path("trace.json")).Run().OK(t)
	if _, calls := trace(t, b.Path("trace.json")); !slices.ContainsFunc(calls, func(e traceEvent) bool { return strings.Contains(e.Args.For, "mount") }) {
		t.Errorf("%d calls", len(calls))
	}
}
