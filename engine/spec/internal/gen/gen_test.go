package main

import (
	"bytes"
	"os"
	"reflect"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
)

func TestGeneratedFilesAreCurrent(t *testing.T) {
	for name, source := range sources() {
		want, err := source()
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is behind the runtime-spec module or the generator: run go generate ./engine/spec", name)
		}
	}
}

func TestLenientFieldsExist(t *testing.T) {
	exist := map[string]bool{}
	for _, s := range structs(reflect.TypeFor[specs.Spec]()) {
		for _, f := range fieldsOf(s) {
			exist[s.Name()+"."+f.key] = !f.omit
		}
	}
	for name := range lenient {
		if !exist[name] {
			t.Errorf("%s is not a field, or one that may be absent anyway", name)
		}
	}
	for name := range conditional {
		if !exist[name] {
			t.Errorf("%s is not a field, or one that may be absent anyway", name)
		}
	}
}
