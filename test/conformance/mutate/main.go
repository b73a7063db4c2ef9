// Command mutate damages the code as mutations.txt says, one place at a time, and fails
// where the test that the conformance page names for it does not notice. The code itself
// stays what it is: Go builds with the damaged file in its place (go help build, -overlay).
//
// Words of demands or tests choose some. What was damaged and noticed stands in the page's last
// column, which is of the list and not of a run: whoever changes the list runs it.
package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed mutations.txt
var list string

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(only []string) error {
	mutations, err := parse(list)
	if err != nil {
		return err
	}
	table, err := os.ReadFile("test/conformance/table.txt")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "berth-mutate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r := runner{dir: dir, programs: map[string]string{}, sound: map[string]string{}}
	tried, unnoticed, unknown := 0, 0, 0
	for _, m := range mutations {
		if len(only) > 0 && !slices.ContainsFunc(only, func(word string) bool { return strings.Contains(m.demand+" "+m.test, word) }) {
			continue
		}
		if err := m.listed(string(table)); err != nil {
			return err
		}
		tried++
		switch problem, err := r.try(m); {
		case errors.Is(err, errSkipped):
			unknown++
			fmt.Printf("skip %s: %s was skipped, so that nothing is known\n", m.demand, m.test)
		case err != nil:
			unnoticed++
			fmt.Printf("FAIL %s: %v\n", m.demand, err)
		case problem != "":
			unnoticed++
			fmt.Printf("FAIL %s: %s %s\n", m.demand, m.test, problem)
		default:
			fmt.Printf("ok   %s: %s notices\n", m.demand, m.test)
		}
	}
	fmt.Printf("%d mutations: %d noticed, %d of tests that are skipped here\n", tried, tried-unnoticed-unknown, unknown)
	if unnoticed > 0 {
		return fmt.Errorf("%d of the mutations pass unnoticed", unnoticed)
	}
	return nil
}

// listed refuses a mutation whose row is gone, or names another test by now.
func (m *mutation) listed(table string) error {
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, m.demand) {
			if slices.Contains(strings.Fields(line), m.test) {
				return nil
			}
			return fmt.Errorf("table.txt: %q does not name %s", m.demand, m.test)
		}
	}
	return fmt.Errorf("table.txt has no row %q", m.demand)
}

// overlay writes the damaged file, and the list by which Go takes it for the file itself.
func (m *mutation) overlay(dir string) (string, error) {
	source, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(source), m.old); n != 1 {
		return "", fmt.Errorf("%s has %q %d times", m.file, m.old, n)
	}
	damaged, overlay := filepath.Join(dir, "damaged.go"), filepath.Join(dir, "overlay.json")
	path, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {path: damaged}})
	if err != nil {
		return "", err
	}
	return overlay, errors.Join(os.WriteFile(damaged, []byte(strings.Replace(string(source), m.old, m.new, 1)), 0o600), os.WriteFile(overlay, replace, 0o600))
}
