package main

import (
	"os"
	"testing"
)

// Mutations stay what they are when the code changes: each place is there once, and each row
// names the test. What has been noticed is still that mutation.
func TestMutationsApply(t *testing.T) {
	t.Chdir("../../..")
	list, err := os.ReadFile(listFile)
	if err != nil {
		t.Fatal(err)
	}
	mutations, err := parse(string(list))
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile(tableFile)
	if err != nil {
		t.Fatal(err)
	}
	known, err := readNoticed()
	if err != nil {
		t.Fatal(err)
	}
	if len(mutations) == 0 || len(known) == 0 {
		t.Fatalf("%d mutations, %d noticed", len(mutations), len(known))
	}
	for _, m := range mutations {
		if err := m.listed(string(table)); err != nil {
			t.Error(err)
		}
		if _, err := m.overlay(t.TempDir()); err != nil {
			t.Errorf("%s: %v", m.demand, err)
		}
		if sum, tried := known[m.demand]; tried && sum != m.sum() {
			t.Errorf("%s: it has changed since it was noticed: make mutate ROWS=%q", m.demand, m.demand)
		}
		delete(known, m.demand)
	}
	for demand := range known {
		t.Errorf("noticed.txt has %q, and mutations.txt has not", demand)
	}
}

func TestParse(t *testing.T) {
	good := "# text\ndemand: MUST do\ntest: a.TestB\nfile: a.go\nold: \\tx\\n\nnew:\n"
	mutations, err := parse(good)
	if err != nil || len(mutations) != 1 || mutations[0].old != "\tx\n" || mutations[0].new != "" {
		t.Fatalf("%+v, %v", mutations, err)
	}
	for _, bad := range []string{"demand: MUST do\ntest: a.TestB\n", "what: x\n"} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
