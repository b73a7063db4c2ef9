package main

import (
	"os"
	"strings"
	"testing"
)

func TestListedTestsExist(t *testing.T) {
	rows, err := parse(table)
	if err != nil {
		t.Fatal(err)
	}
	there, err := findTests("../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := check(rows, there); err != nil {
		t.Error(err)
	}
	if !there["test/conformance.TestListedTestsExist"] {
		t.Error("this very test is not found")
	}
}

func TestPageIsCurrent(t *testing.T) {
	rows, err := parse(table)
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	write(&page, rows)
	have, err := os.ReadFile("../../docs/spec-conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != page.String() {
		t.Error("docs/spec-conformance.md is not current: run make docs")
	}
}

func TestMissingTestsAreFound(t *testing.T) {
	rows, err := parse("# d\n## s\nMUST do = a.TestThere a.TestGone\nSHOULD not =\n")
	if err != nil || len(rows) != 2 || rows[0].demand != "do" || len(rows[1].tests) != 0 {
		t.Fatalf("%+v, %v", rows, err)
	}
	if err := check(rows, tests{"a.TestThere": true}); err == nil || strings.Contains(err.Error(), "TestThere\n") || !strings.Contains(err.Error(), "a.TestGone") {
		t.Errorf("%v, want a complaint about a.TestGone alone", err)
	}
	for _, bad := range []string{"MUST x = y\n", "# d\n## s\nMAY x = y\n", "# d\n## s\nMUST x\n"} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
