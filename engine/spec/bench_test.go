package spec_test

import (
	stdjson "encoding/json"
	"os"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/engine/spec"
)

// dockerConfig is a config as Docker writes it, with a default seccomp profile.
func dockerConfig(tb testing.TB) []byte {
	tb.Helper()
	data, err := os.ReadFile("testdata/docker.json")
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func BenchmarkParse(b *testing.B) {
	data := dockerConfig(b)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := spec.Parse(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodingJSON(b *testing.B) {
	data := dockerConfig(b)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if err := stdjson.Unmarshal(data, new(specs.Spec)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	s, err := spec.Parse(dockerConfig(b))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := spec.Check(s); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFormat(b *testing.B) {
	s, err := spec.Parse(dockerConfig(b))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		spec.Format(s, "  ")
	}
}
