package integration

import (
	"slices"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

func TestHooksFailingByRun(t *testing.T) {
	for _, kind := range []string{"prestart", "createRuntime", "createContainer", "startContainer", "poststart"} {
		t.Run(kind, func(t *testing.T) {
			b := harness.New(t)
			h := withHooks(b, b.Container("/inside", "hang"))
			*h.kind(kind) = []specs.Hook{h.record(kind, kind+"-bad", "3", "the hook's own words")}
			h.Run().Fails(t, kind, "the hook's own words")
			b.Berth("state", h.ID).Fails(t, "container does not exist")
		})
	}
}

// A failing poststop hook is a warning; the others still run, and the container goes.
func TestHooksFailingPoststop(t *testing.T) {
	b := harness.New(t)
	h := withHooks(b, b.Container("/bin/true"))
	h.Spec.Hooks.Poststop = []specs.Hook{h.record("poststop", "poststop-bad", "3", "own words"), h.record("poststop", "poststop-2")}
	h.RunDetached().WaitExit()
	h.Command("delete", nil).Run().OK(t).Warns(t, "poststop")
	if got := h.names(); !slices.Contains(got, "poststop-2") {
		t.Errorf("%v", got)
	}
	b.Berth("state", h.ID).Fails(t, "container does not exist")
}

func TestHooksTimeout(t *testing.T) {
	for _, kind := range []string{"prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"} {
		t.Run(kind, func(t *testing.T) {
			b := harness.New(t)
			h := withHooks(b, b.Container("/bin/true"))
			hang := h.record(kind, "")
			hang.Args = []string{"inside", "hang"}
			hang.Env = []string{b.Mark()}
			hang.Timeout = ptr(1)
			*h.kind(kind) = []specs.Hook{hang}
			r := h.Run()
			if kind == "poststop" {
				r.OK(t).Warns(t, kind)
			} else {
				r.Fails(t, kind)
			}
		})
	}
}

func TestHooksThatCannotBeStarted(t *testing.T) {
	for _, kind := range []string{"prestart", "createRuntime", "createContainer", "startContainer", "poststart"} {
		t.Run(kind, func(t *testing.T) {
			b := harness.New(t)
			h := withHooks(b, b.Container("/bin/true"))
			*h.kind(kind) = []specs.Hook{{Path: "/no/such/hook"}}
			h.Run().Fails(t, kind, "/no/such/hook", "no such file or directory")
		})
	}
}

// A relative path is refused before anything is done.
func TestHooksPathMustBeAbsolute(t *testing.T) {
	for _, kind := range hookKinds {
		b := harness.New(t)
		h := withHooks(b, b.Container("/bin/true"))
		*h.kind(kind) = []specs.Hook{{Path: "bin/true"}}
		h.Run().Fails(t, "/hooks/"+kind+"/0/path")
		if got := h.names(); len(got) != 0 {
			t.Errorf("%s: hooks ran: %v", kind, got)
		}
	}
}
