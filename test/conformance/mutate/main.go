// Command mutate damages the code as mutations.txt says, one place at a time, and fails
// where the test that the conformance page names for it does not notice. The code itself
// stays what it is: Go builds with the damaged file in its place (go help build, -overlay).
//
// Words of demands or tests choose some, and "new" those that have not been noticed. What was
// noticed is kept in noticed.txt, by which the page tells the rows that have been tried; a mutation
// that is changed has to be tried again.
package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	listFile    = "test/conformance/mutate/mutations.txt"
	noticedFile = "test/conformance/mutate/noticed.txt"
	tableFile   = "test/conformance/table.txt"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(only []string) error {
	list, err := os.ReadFile(listFile)
	if err != nil {
		return err
	}
	mutations, err := parse(string(list))
	if err != nil {
		return err
	}
	table, err := os.ReadFile(tableFile)
	if err != nil {
		return err
	}
	known, err := readNoticed()
	if err != nil {
		return err
	}
	fresh := slices.Contains(only, "new")
	only = slices.DeleteFunc(only, func(word string) bool { return word == "new" })
	os.Setenv("CGO_ENABLED", "0") // as the engine is shipped, and the helper runs in a container without libraries
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
		if fresh && known[m.demand] == m.sum() {
			continue
		}
		if err := m.listed(string(table)); err != nil {
			return err
		}
		tried++
		sum := ""
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
			sum = m.sum()
			fmt.Printf("ok   %s: %s notices\n", m.demand, m.test)
		}
		if err := note(mutations, m.demand, sum); err != nil {
			return err
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

// sum is what changes when the mutation does.
func (m *mutation) sum() string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join([]string{m.demand, m.test, m.file, m.old, m.new}, "\x00"))))[:12]
}

// readNoticed reads the sums of the mutations that were noticed, by their demands.
func readNoticed() (map[string]string, error) {
	text, err := os.ReadFile(noticedFile)
	if err != nil {
		return nil, err
	}
	known := map[string]string{}
	for line := range strings.Lines(string(text)) {
		sum, demand, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		known[demand] = sum
	}
	return known, nil
}

// note keeps what became of one beside those that are still what was tried, in the order of the
// list.
func note(mutations []mutation, demand, sum string) error {
	known, err := readNoticed()
	if err != nil {
		return err
	}
	known[demand] = sum
	var text []byte
	for _, m := range mutations {
		if known[m.demand] == m.sum() {
			text = fmt.Appendf(text, "%s %s\n", m.sum(), m.demand)
		}
	}
	return os.WriteFile(noticedFile, text, 0o644)
}
