package plan

import (
	"testing"

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
		{"discard", map[string]string{RootWritesAnnotation: "discard"}, mount, unix.MS_SLAVE, true, true},
		{"another word", map[string]string{RootWritesAnnotation: "keep"}, mount, unix.MS_SLAVE, false, false},
		{"without a mount namespace", map[string]string{RootWritesAnnotation: "discard"}, nil, unix.MS_SLAVE, false, false},
		{"shared with the host", map[string]string{RootWritesAnnotation: "discard"}, mount, unix.MS_SHARED, false, false},
		{"but a folder", map[string]string{RootWritesAnnotation: "discard", RootReadonlyAnnotation: "/a/b"}, mount, unix.MS_SLAVE, true, true},
		{"a folder of what is kept", map[string]string{RootReadonlyAnnotation: "/a/b"}, mount, unix.MS_SLAVE, false, false},
		{"but the root", map[string]string{RootWritesAnnotation: "discard", RootReadonlyAnnotation: "/"}, mount, unix.MS_SLAVE, false, false},
		{"but no clean path", map[string]string{RootWritesAnnotation: "discard", RootReadonlyAnnotation: "/a/../b"}, mount, unix.MS_SLAVE, false, false},
		{"but a relative path", map[string]string{RootWritesAnnotation: "discard", RootReadonlyAnnotation: "a"}, mount, unix.MS_SLAVE, false, false},
	} {
		p := &Plan{Namespaces: test.namespaces, Root: Root{Propagation: test.propagation}}
		problems := p.planDiscard(test.value)
		if p.Root.Discard != test.discard || (len(problems) == 0) != test.ok {
			t.Errorf("%s: %v, %v", test.name, p.Root.Discard, problems)
		}
	}
}
