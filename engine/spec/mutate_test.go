package spec_test

import (
	stdjson "encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/engine/spec"
	"github.com/berth-runtime/berth/internal/test/mutate"
)

func parseAny(tb testing.TB, data []byte) any {
	tb.Helper()
	dec := stdjson.NewDecoder(strings.NewReader(string(data)))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		tb.Fatal(err)
	}
	return v
}

// rareConfig has the entries that few configs have, with right values: what checks
// them looks at the words first, and of those that full makes up none is right.
func rareConfig(tb testing.TB) []byte {
	tb.Helper()
	data, err := os.ReadFile("testdata/rare.json")
	if err == nil {
		_, _, err = spec.ParseChecked(data)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// FuzzMutations damages whole configs. Each must be taken just where
// encoding/json takes it, or be refused by complaints that all name an entry.
func FuzzMutations(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed, seed%9)
	}
	docker := dockerConfig(f)
	all, err := stdjson.Marshal(full(f))
	if err != nil {
		f.Fatal(err)
	}
	bases := [][]byte{docker, all, rareConfig(f)}
	f.Fuzz(func(t *testing.T, seed, times uint64) {
		r := rand.New(rand.NewPCG(seed, times))
		data, err := stdjson.Marshal(mutate.Document(r, parseAny(t, bases[seed%3]), int(times%16)))
		if err != nil {
			t.Fatal(err)
		}
		_, err = spec.Parse(data)
		if stdErr := stdjson.Unmarshal(data, new(specs.Spec)); err == nil && stdErr != nil {
			t.Errorf("taken, but encoding/json says %v", stdErr)
		} else if err != nil && stdErr == nil && !deliberate(err) {
			t.Errorf("refused, but encoding/json takes it: %v", err)
		}
		_, _, err = spec.ParseChecked(data)
		if err == nil {
			return
		}
		if strings.ContainsAny(err.Error(), "\n\x00") {
			t.Errorf("not one line: %v", err)
		}
		var list spec.Errors
		if !errors.As(err, &list) {
			t.Fatalf("valid JSON refused by %v", err)
		}
		for i, c := range list {
			if c.Message == "" || c.Pointer == "" && i != 50 && !strings.HasPrefix(c.Message, "expected an object, found") {
				t.Errorf("a complaint about nothing: %+v", c)
			}
		}
	})
}

// TestMemoryIsBounded feeds documents that are made to cost more than their
// size.
func TestMemoryIsBounded(t *testing.T) {
	for name, data := range map[string]string{
		"nesting":  strings.Repeat("[", spec.MaxSize),
		"mounts":   `{"mounts":[` + strings.Repeat("{},", spec.MaxSize/3),
		"rules":    `{"linux":{"seccomp":{"syscalls":[` + strings.Repeat("{},", spec.MaxSize/3),
		"faults":   `{"process":{"args":[` + strings.Repeat("0,", spec.MaxSize/2),
		"unknown":  `{"x":[` + strings.Repeat("{},", spec.MaxSize/3),
		"escapes":  `{"hostname":"` + strings.Repeat(`\n`, spec.MaxSize/2),
		"mappings": `{"linux":{"uidMappings":[` + strings.Repeat(`{"containerID":0,"hostID":0,"size":1},`, 200_000) + `{}]}}`,
		"map":      `{"annotations":{` + manyKeys(200_000) + `}}`,
	} {
		input := []byte(data)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := spec.ParseChecked(input)
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: accepted", name)
		} else if len(err.Error()) > 10_000 {
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		}
		if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 256 {
			t.Errorf("%s: %d MiB allocated in all", name, used)
		}
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`"` + strconv.Itoa(i) + `":"",`)
	}
	return b.String() + `"":""`
}
