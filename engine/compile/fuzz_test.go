package compile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/engine/compile"
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/program"
	"github.com/berth-runtime/berth/engine/program/refinterp"
	"github.com/berth-runtime/berth/engine/spec"
	"github.com/berth-runtime/berth/internal/test/mutate"
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
	f.Fuzz(outcome)
}

// FuzzDamagedConfig is FuzzConfig with documents that stay JSON, which bytes changed
// at random seldom do.
func FuzzDamagedConfig(f *testing.F) {
	var bases [][]byte
	names, _ := filepath.Glob("testdata/*.json")
	docker, _ := filepath.Glob("../spec/testdata/*.json")
	for _, name := range append(names, docker...) {
		config, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		bases = append(bases, config)
	}
	for seed := range uint64(300) {
		f.Add(seed, seed%7)
	}
	f.Fuzz(func(t *testing.T, seed, times uint64) {
		var doc any
		d := json.NewDecoder(bytes.NewReader(bases[seed%uint64(len(bases))]))
		d.UseNumber()
		if err := d.Decode(&doc); err != nil {
			t.Fatal(err)
		}
		config, err := json.Marshal(mutate.Document(rand.New(rand.NewPCG(seed, times)), doc, int(times%16)))
		if err != nil {
			t.Fatal(err)
		}
		outcome(t, config)
	})
}

// outcome takes a config through all stages.
func outcome(t *testing.T, config []byte) {
	// More than this for a config is a config that can end its reader.
	const most = 64 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	code := compiled(t, config)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > most {
		t.Errorf("%d bytes allocated for a config of %d", used, len(config))
	}
	if code == nil {
		return
	}
	kernel := &refinterp.Fake{FDs: []int{0, 1, 2, 3, 4}, Answer: inTheChild}
	result, err := refinterp.Run(code.Segment(), kernel)
	if err != nil {
		t.Fatal(err)
	}
	if result.Failure != nil || !result.Gone {
		t.Fatalf("it ended with %+v\n%s", result.Failure, code)
	}
}

// compiled gives the Program of a config, nil for one that is refused.
func compiled(t *testing.T, config []byte) *program.Program {
	s, _, err := spec.ParseChecked(config)
	if err != nil {
		refused(t, config, err)
		return nil
	}
	p, err := plan.New(s, theHost, plan.Options{ID: "demo", Bundle: "/bundle"})
	if err != nil {
		refused(t, config, err)
		return nil
	}
	code, err := compile.Container(p, factsOf(p))
	if err != nil {
		t.Fatalf("planned, and not to be compiled: %v", err)
	}
	return code
}

// refused makes sure that each complaint names the entry that it is about. Of what is
// no JSON at all the place is a line; of what is not an object it is the whole.
func refused(t *testing.T, config []byte, err error) {
	t.Helper()
	var complaints spec.Errors
	if !errors.As(err, &complaints) {
		if json.Valid(config) && !strings.Contains(err.Error(), "line ") {
			t.Errorf("refused without a place: %v", err)
		}
		return
	}
	for i, c := range complaints {
		if c.Message == "" || c.Pointer == "" && i != 50 && !strings.HasPrefix(c.Message, "expected an object, found") {
			t.Errorf("a complaint about nothing: %+v", c)
		}
	}
}
