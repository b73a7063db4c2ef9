package compile_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/berth-runtime/berth/compile"
	"github.com/berth-runtime/berth/plan"
	"github.com/berth-runtime/berth/program/refinterp"
	"github.com/berth-runtime/berth/spec"
)

// FuzzConfig takes a config through all pure stages: each outcome is a refusal
// that names its place, or a Program that runs over the fake kernel.
func FuzzConfig(f *testing.F) {
	for _, pattern := range []string{"testdata/*.json", "../spec/testdata/*.json"} {
		names, _ := filepath.Glob(pattern)
		for _, name := range names {
			config, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(config)
		}
	}
	f.Fuzz(func(t *testing.T, config []byte) {
		s, _, err := spec.ParseChecked(config)
		if err != nil {
			refused(t, err)
			return
		}
		p, err := plan.New(s, theHost, plan.Options{ID: "demo", Bundle: "/bundle"})
		if err != nil {
			refused(t, err)
			return
		}
		code, err := compile.Container(p, factsOf(p))
		if err != nil {
			t.Fatalf("planned, and not to be compiled: %v", err)
		}
		kernel := &refinterp.Fake{FDs: []int{0, 1, 2, 3, 4}, Answer: inTheChild}
		result, err := refinterp.Run(code.Segment(), kernel)
		if err != nil {
			t.Fatal(err)
		}
		if result.Failure != nil {
			t.Fatalf("op %d failed: %v\n%s", result.Failure.Index, result.Failure.Errno, code)
		}
	})
}

// refused makes sure that complaints name their places.
func refused(t *testing.T, err error) {
	t.Helper()
	var complaints spec.Errors
	if !errors.As(err, &complaints) {
		return // broken JSON: it has a line and a column
	}
	for _, c := range complaints {
		if c.Message == "" {
			t.Errorf("a complaint about %q says nothing", c.Pointer)
		}
	}
}
