package plan

import (
	"testing"

	"github.com/berth-runtime/berth/engine/spec"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

func TestPlanDiscard(t *testing.T) {
	mount := []Namespace{{Type: specs.MountNamespace}}
	for _, test := range []struct {
		name        string
		value       map[string]string
		namespaces  []Namespace
		propagation uintptr
		discard, ok bool
	}{
		{"nothing asked for", nil, mount, unix.MS_SLAVE, false, true},
		{"discard", map[string]string{spec.RootWritesAnnotation: "discard"}, mount, unix.MS_SLAVE, true, true},
		{"another word", map[string]string{spec.RootWritesAnnotation: "keep"}, mount, unix.MS_SLAVE, false, false},
		{"without a mount namespace", map[string]string{spec.RootWritesAnnotation: "discard"}, nil, unix.MS_SLAVE, false, false},
		{"shared with the host", map[string]string{spec.RootWritesAnnotation: "discard"}, mount, unix.MS_SHARED, false, false},
		{"but a folder", map[string]string{spec.RootWritesAnnotation: "discard", spec.RootReadonlyAnnotation: "/a/b"}, mount, unix.MS_SLAVE, true, true},
		{"a folder of what is kept", map[string]string{spec.RootReadonlyAnnotation: "/a/b"}, mount, unix.MS_SLAVE, false, false},
		{"but the root", map[string]string{spec.RootWritesAnnotation: "discard", spec.RootReadonlyAnnotation: "/"}, mount, unix.MS_SLAVE, false, false},
		{"but no clean path", map[string]string{spec.RootWritesAnnotation: "discard", spec.RootReadonlyAnnotation: "/a/../b"}, mount, unix.MS_SLAVE, false, false},
		{"but a relative path", map[string]string{spec.RootWritesAnnotation: "discard", spec.RootReadonlyAnnotation: "a"}, mount, unix.MS_SLAVE, false, false},
	} {
		p := &Plan{Namespaces: test.namespaces, Root: Root{Propagation: test.propagation}}
		problems := p.planDiscard(test.value)
		if p.Root.Discard != test.discard || (len(problems) == 0) != test.ok {
			t.Errorf("%s: %v, %v", test.name, p.Root.Discard, problems)
		}
	}
}
