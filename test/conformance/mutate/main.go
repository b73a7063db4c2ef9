// Command mutate damages the code as mutations.txt says, one place at a time, and fails
// where the test that the conformance page names for it does not notice. The code itself
// stays what it is: Go builds with the damaged file in its place (go help build, -overlay).
package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
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
	unnoticed := 0
	for _, m := range mutations {
		if len(only) > 0 && !slices.ContainsFunc(only, func(word string) bool { return strings.Contains(m.demand, word) }) {
			continue
		}
		if err := m.listed(string(table)); err != nil {
			return err
		}
		problem, err := m.try(dir)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", m.demand, err)
		case problem != "":
			unnoticed++
			fmt.Printf("FAIL %s: %s %s\n", m.demand, m.test, problem)
		default:
			fmt.Printf("ok   %s: %s notices\n", m.demand, m.test)
		}
	}
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

// try runs the test with the code as it is, which is to pass, and damaged, which is to
// be noticed by a failure of that test.
func (m *mutation) try(dir string) (problem string, err error) {
	source, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(source), m.old); n != 1 {
		return "", fmt.Errorf("%s has %q %d times", m.file, m.old, n)
	}
	if out, err := m.run(""); err != nil {
		return "fails without a mutation:\n" + out, nil
	} else if !strings.Contains(out, "--- PASS: "+m.name()+" ") {
		return "was skipped, so that nothing is known:\n" + out, nil
	}
	damaged, overlay := filepath.Join(dir, "damaged.go"), filepath.Join(dir, "overlay.json")
	path, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {path: damaged}})
	if err == nil {
		err = errors.Join(os.WriteFile(damaged, []byte(strings.Replace(string(source), m.old, m.new, 1)), 0o600), os.WriteFile(overlay, replace, 0o600))
	}
	if err != nil {
		return "", err
	}
	if out, err := exec.Command("go", "vet", "-overlay="+overlay, "./"+filepath.Dir(m.file)).CombinedOutput(); err != nil {
		return "", fmt.Errorf("the mutation is not a program: %s", out)
	}
	out, err := m.run(overlay)
	if err == nil || !strings.Contains(out, "--- FAIL: "+m.name()+" ") {
		return "passes all the same", nil
	}
	return "", nil
}

func (m *mutation) name() string { return m.test[strings.LastIndexByte(m.test, '.')+1:] }

// run runs the test, with an engine that has the damage too: the harness, which builds
// one with an overlay of its own, is given it.
func (m *mutation) run(overlay string) (string, error) {
	cmd := exec.Command("go", "test", "-count=1", "-v", "-run", "^"+m.name()+"$", "./"+strings.TrimSuffix(m.test, "."+m.name()))
	if overlay != "" {
		engine := filepath.Join(filepath.Dir(overlay), "berth")
		if out, err := exec.Command("go", "build", "-overlay="+overlay, "-o", engine, "./cmd/berth").CombinedOutput(); err != nil {
			return "", fmt.Errorf("build the engine: %s", out)
		}
		cmd.Args = slices.Insert(cmd.Args, 2, "-overlay="+overlay)
		cmd.Env = append(os.Environ(), "BERTH_BIN="+engine)
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return "", err
	}
	return string(out), err
}
