package integration

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
	"github.com/berth-runtime/berth/test/inside/view"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// hooked gives a container hooks of all six kinds, two of each, that record what they see in one
// file. The file is bind mounted to /calls in the container, for the hooks that run there.
type hooked struct {
	*harness.Container
	calls string
}

var hookKinds = []string{"prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"}

func withHooks(b *harness.Box, c *harness.Container) hooked {
	b.T.Helper()
	h := hooked{Container: c, calls: b.WriteFile("calls", "", 0o666)}
	c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: "/calls", Type: "bind", Source: h.calls, Options: []string{"bind"}})
	c.WriteFile("calls", "", 0o644)
	b.WriteFile("marker", "the host's folder", 0o644)
	c.Spec.Hooks = &specs.Hooks{}
	for _, kind := range hookKinds {
		*h.kind(kind) = []specs.Hook{h.record(kind, kind+"-1"), h.record(kind, kind+"-2")}
	}
	return h
}

func (h hooked) kind(name string) *[]specs.Hook {
	hooks := h.Spec.Hooks
	return map[string]*[]specs.Hook{
		//lint:ignore SA1019 deprecated for those who write configs; an engine still has to run them.
		"prestart": &hooks.Prestart, "createRuntime": &hooks.CreateRuntime, "createContainer": &hooks.CreateContainer,
		"startContainer": &hooks.StartContainer, "poststart": &hooks.Poststart, "poststop": &hooks.Poststop,
	}[name]
}

// record is a hook that writes down what it sees. More words are its exit status and a message for
// standard error.
func (h hooked) record(kind, name string, more ...string) specs.Hook {
	path, file := harness.Helper(h.Box.T), h.calls
	if kind == "startContainer" {
		path, file = "/inside", "/calls"
	}
	return specs.Hook{Path: path, Args: append([]string{"a-hook", "hook", name, file}, more...), Env: []string{"KIND=" + kind}}
}

func (h hooked) recorded() []view.HookCall {
	h.Box.T.Helper()
	data, err := os.ReadFile(h.calls)
	if err != nil {
		h.Box.T.Fatal(err)
	}
	var calls []view.HookCall
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		if line == "" {
			continue
		}
		var call view.HookCall
		harness.Decode(h.Box.T, line, &call)
		calls = append(calls, call)
	}
	return calls
}

func (h hooked) names() []string {
	names := []string{}
	for _, call := range h.recorded() {
		names = append(names, call.Name)
	}
	return names
}

func both(kinds ...string) []string {
	names := []string{}
	for _, kind := range kinds {
		names = append(names, kind+"-1", kind+"-2")
	}
	return names
}

func TestHooksOrder(t *testing.T) {
	b := harness.New(t)
	h := withHooks(b, b.Container("/bin/sh", "-c", "echo '{\"Name\":\"process\"}' >> /calls"))
	h.Create()
	if got, want := h.names(), both("prestart", "createRuntime", "createContainer"); !slices.Equal(got, want) {
		t.Fatalf("by create: %v, want %v", got, want)
	}
	h.Start()
	h.WaitExit()
	got := h.names()
	// The process and the poststart hooks run at the same time.
	process := slices.Index(got, "process")
	if process < 8 {
		t.Fatalf("by start: %v, want the process after the startContainer hooks", got)
	}
	if got, want := slices.Delete(got, process, process+1), both("prestart", "createRuntime", "createContainer", "startContainer", "poststart"); !slices.Equal(got, want) {
		t.Fatalf("by start: %v, want %v", got, want)
	}
	h.Delete()
	if got := h.names(); !slices.Equal(got[len(got)-2:], both("poststop")) || len(got) != 13 {
		t.Errorf("by delete: %v", got)
	}
}

func TestHooksOfRun(t *testing.T) {
	b := harness.New(t)
	h := withHooks(b, b.Container("/bin/true"))
	h.Run().OK(t)
	if got, want := h.names(), both(hookKinds...); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Each hook gets the state that the container is in, on its standard input, with the pid as it is
// called where the hook runs.
func TestHooksState(t *testing.T) {
	b := harness.New(t)
	h := withHooks(b, b.Container("/inside", "hang"))
	h.Spec.Annotations = map[string]string{"key": "value"}
	h.Create()
	pid := h.PID
	h.Start().Kill("KILL").WaitExit()
	h.Delete()
	want := map[string]string{
		"prestart": "creating", "createRuntime": "creating", "createContainer": "creating",
		"startContainer": "created", "poststart": "running", "poststop": "stopped",
	}
	for _, call := range h.recorded() {
		var s specs.State
		if err := json.Unmarshal([]byte(call.State), &s); err != nil {
			t.Errorf("%s: state %q: %v", call.Name, call.State, err)
			continue
		}
		kind := call.Name[:len(call.Name)-2]
		if string(s.Status) != want[kind] {
			t.Errorf("%s: status %s, want %s", call.Name, s.Status, want[kind])
		}
		wantPID := pid
		switch kind {
		case "poststop":
			wantPID = 0
		case "createContainer", "startContainer":
			wantPID = 1 // they run in its pid namespace
		}
		if s.Pid != wantPID {
			t.Errorf("%s: pid %d, want %d", call.Name, s.Pid, wantPID)
		}
		if s.ID != h.ID || s.Bundle != h.Dir || s.Annotations["key"] != "value" || s.Version == "" {
			t.Errorf("%s: state %+v", call.Name, s)
		}
	}
}

// prestart, createRuntime, poststart and poststop run in the engine's namespaces; createContainer
// in the container's, but before the root is changed, so that the host's files are still there;
// startContainer in the container, where they aren't.
func TestHooksNamespaces(t *testing.T) {
	b := harness.New(t)
	h := withHooks(b, b.Container("/inside", "hang"))
	h.Create()
	container := processNamespaces(t, h.PID)
	h.Start().Kill("KILL").WaitExit()
	h.Delete()
	host := processNamespaces(t, os.Getpid())
	for _, call := range h.recorded() {
		kind := call.Name[:len(call.Name)-2]
		want := host
		if kind == "createContainer" || kind == "startContainer" {
			want = container
		}
		for _, ns := range []string{"mnt", "net", "ipc", "uts"} {
			// Of a createContainer hook's mount namespace the spec says that it is the container's.
			if call.View.NS[ns] != want[ns] {
				t.Errorf("%s: %s namespace %s, want %s", call.Name, ns, call.View.NS[ns], want[ns])
			}
		}
		if inContainer := call.View.Files["/inside"].Error == ""; inContainer != (kind == "startContainer") {
			t.Errorf("%s: the root is the container's: %v", call.Name, inContainer)
		}
	}
}

// A hook gets the environment and the arguments that it asks for, and no descriptors besides its
// three.
func TestHooksSurroundings(t *testing.T) {
	b := harness.New(t)
	h := withHooks(b, b.Container("/bin/true"))
	h.Extra = extraFiles(b, "three")
	h.Run().OK(t)
	for _, call := range h.recorded() {
		if !slices.Contains(call.Env, "KIND="+call.Name[:len(call.Name)-2]) || len(call.Env) != 1 {
			t.Errorf("%s: environment %q", call.Name, call.Env)
		}
		if call.Args[0] != "a-hook" {
			t.Errorf("%s: arguments %q", call.Name, call.Args)
		}
		if len(call.View.FDs) != 3 {
			t.Errorf("%s: descriptors %v", call.Name, call.View.FDs)
		}
	}
}

// A hook that names no environment has the engine's, and the container's process's in the
// container.
func TestHooksWithoutEnvironment(t *testing.T) {
	b := harness.New(t)
	h := withHooks(b, b.Container("/bin/true"))
	h.Spec.Process.Env = append(h.Spec.Process.Env, "OF=the container")
	t.Setenv("OF", "the engine")
	for _, kind := range hookKinds {
		for i := range *h.kind(kind) {
			(*h.kind(kind))[i].Env = nil
		}
	}
	h.Create().Start().WaitExit()
	h.Delete()
	calls := h.recorded()
	if len(calls) != 2*len(hookKinds) {
		t.Errorf("%d hooks have run", len(calls))
	}
	for _, call := range calls {
		want := "OF=the engine"
		if strings.HasPrefix(call.Name, "startContainer") {
			want = "OF=the container"
		}
		if !slices.Contains(call.Env, want) {
			t.Errorf("%s: environment %q", call.Name, call.Env)
		}
	}
}

// What the hooks say is added to the files that the annotations name, as with crun.
func TestHooksOutput(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true")
	out, errs := b.WriteFile("out", "before\n", 0o644), b.Path("errs")
	c.Spec.Annotations = map[string]string{"run.oci.hooks.stdout": out, "run.oci.hooks.stderr": errs}
	say := func(shell, name string) []specs.Hook {
		return []specs.Hook{{Path: shell, Args: []string{"sh", "-c", "echo " + name + "; echo failing " + name + " >&2"}}}
	}
	c.Spec.Hooks = &specs.Hooks{CreateRuntime: say("/bin/sh", "one"), CreateContainer: say("/bin/sh", "two"), StartContainer: say("/bin/sh", "three"), Poststop: say("/bin/sh", "four")}
	c.Run().OK(t)
	if got, want := readFile(t, out), "before\none\ntwo\nthree\nfour\n"; got != want {
		t.Errorf("output %q, want %q", got, want)
	}
	if got, want := readFile(t, errs), "failing one\nfailing two\nfailing three\nfailing four\n"; got != want {
		t.Errorf("errors %q, want %q", got, want)
	}
	c.Spec.Annotations["run.oci.hooks.stderr"] = b.Path("not/there")
	c.Spec.Hooks.Poststop = nil
	c.Run().FailsWith(t, 1, "/hooks/createRuntime/0", "not/there", "no such file or directory")
}

// A failing hook before the process runs undoes the container and fails the command; poststop hooks
// run then.
func TestHooksFailing(t *testing.T) {
	for _, kind := range []string{"prestart", "createRuntime", "createContainer", "startContainer", "poststart"} {
		t.Run(kind, func(t *testing.T) {
			b := harness.New(t)
			h := withHooks(b, b.Container("/bin/sh", "-c", "echo '{\"Name\":\"process\"}' >> /calls; exec /inside hang"))
			*h.kind(kind) = []specs.Hook{h.record(kind, kind+"-1"), h.record(kind, kind+"-bad", "3", "the hook's own words"), h.record(kind, kind+"-2")}
			if kind == "startContainer" || kind == "poststart" {
				h.Create()
				h.Command("start", nil).Run().Fails(t, kind, "the hook's own words")
				h.WaitExit()
			} else {
				h.TryCreate().Fails(t, kind, "the hook's own words")
			}
			got := h.names()
			if !slices.Contains(got, kind+"-bad") || slices.Contains(got, kind+"-2") {
				t.Errorf("hooks after the failing one ran, or it did not: %v", got)
			}
			if ran := slices.Contains(got, "process"); ran && kind != "poststart" {
				t.Error("the process ran")
			}
			if !slices.Contains(got, "poststop-2") {
				t.Errorf("no poststop hooks ran: %v", got)
			}
			b.Berth("state", h.ID).Fails(t, "container does not exist")
		})
	}
}

// The engine need not read what a hook does not: a hook that ignores its input must not make it
// fail.
func TestHooksThatIgnoreTheirInput(t *testing.T) {
	b := harness.New(t)
	h := withHooks(b, b.Container("/bin/true"))
	h.Spec.Annotations = map[string]string{"long": strings.Repeat("x", 1<<20)}
	for _, kind := range hookKinds {
		*h.kind(kind) = []specs.Hook{{Path: "/bin/true"}}
	}
	h.Run().OK(t)
}

// processNamespaces are the namespaces of a process of the host, by the names of /proc/PID/ns.
func processNamespaces(t *testing.T, pid int) map[string]string {
	t.Helper()
	ns := map[string]string{}
	for _, kind := range []string{"cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"} {
		target, err := os.Readlink(procPath(pid, "ns/"+kind))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		ns[kind] = target
	}
	return ns
}

// When the poststop hooks run nothing is left of the container, whether it was deleted or could
// not be made.
func TestHooksPoststopComeLast(t *testing.T) {
	for name, fails := range map[string]bool{"delete": false, "failed create": true} {
		t.Run(name, func(t *testing.T) {
			b := harness.New(t)
			c := b.Container("/bin/true")
			said := b.Path("said")
			script := "echo poststop >> " + said + "\n"
			for _, h := range harness.Hierarchies(t) {
				script += "[ ! -e " + h.Dir + c.Spec.Linux.CgroupsPath + " ] || echo " + h.Dir + " >> " + said + "\n"
			}
			c.Spec.Hooks = &specs.Hooks{Poststop: []specs.Hook{{Path: "/bin/sh", Args: []string{"sh", "-c", script}}}}
			if fails {
				c.Spec.Hooks.CreateRuntime = []specs.Hook{{Path: "/bin/false"}}
				c.Command("create", nil).Run().Fails(t, "/hooks/createRuntime/0")
			} else {
				c.Create()
				c.Delete()
			}
			if text, err := os.ReadFile(said); err != nil || string(text) != "poststop\n" {
				t.Errorf("the hook says %q (%v): cgroups that were left", text, err)
			}
		})
	}
}
