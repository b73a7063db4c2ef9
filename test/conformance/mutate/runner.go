package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A runner runs single tests, and knows which pass with the code as it is.
type runner struct {
	dir      string
	programs map[string]string // of packages that only call the engine: the test program, built once
	sound    map[string]string // by test: "" for one that passes, or what it says
}

// errSkipped is of a test that this machine can't run.
var errSkipped = errors.New("the test was skipped")

// try runs the test with the code as it is, which is to pass, and damaged, which is to
// be noticed by a failure of that test.
func (r *runner) try(m mutation) (problem string, err error) {
	said, known := r.sound[m.test]
	if !known {
		if said, err = r.run(m, ""); err != nil {
			return "", err
		}
		r.sound[m.test] = said
	}
	switch {
	case strings.Contains(said, "--- SKIP: "+m.name()+" "):
		return "", errSkipped
	case !strings.Contains(said, "--- PASS: "+m.name()+" "):
		return "fails without a mutation:\n" + said, nil
	}
	overlay, err := m.overlay(r.dir)
	if err != nil {
		return "", err
	}
	said, err = r.run(m, overlay)
	if err != nil {
		return "", err
	}
	if !strings.Contains(said, "--- FAIL: "+m.name()+" ") {
		return "passes all the same", nil
	}
	return "", nil
}

func (m *mutation) name() string { return m.test[strings.LastIndexByte(m.test, '.')+1:] }

// folder is the package of the test.
func (m *mutation) folder() string { return strings.TrimSuffix(m.test, "."+m.name()) }

// run runs the test and gives what it says. Below test/ it calls an engine that has the damage, and
// is itself built from the code as it is; elsewhere it is built with it.
func (r *runner) run(m mutation, overlay string) (string, error) {
	words := []string{"test", "-count=1", "-v", "-run", "^" + m.name() + "$"}
	if overlay != "" {
		words = append(words, "-overlay="+overlay)
	}
	cmd := exec.Command("go", append(words, "./"+m.folder())...)
	if strings.HasPrefix(m.folder(), "test/") {
		program, err := r.program(m.folder())
		if err != nil {
			return "", err
		}
		engine := filepath.Join(r.dir, "berth")
		if out, err := exec.Command("go", "build", "-overlay="+overlay, "-o", engine, "./cmd/berth").CombinedOutput(); err != nil {
			return "", fmt.Errorf("build the engine: %s", out)
		}
		cmd = exec.Command(program, "-test.v", "-test.run", "^"+m.name()+"$")
		cmd.Dir = m.folder()
		cmd.Env = append(os.Environ(), "BERTH_BIN="+engine)
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return "", err
	}
	if strings.Contains(string(out), "[build failed]") {
		return "", fmt.Errorf("the mutation is no program: %s", out)
	}
	return string(out), nil
}

// program is the test program of a package, and the helper that its tests put into containers.
func (r *runner) program(folder string) (string, error) {
	if r.programs[folder] == "" {
		program := filepath.Join(r.dir, filepath.Base(folder)+".test")
		helper := filepath.Join(r.dir, "inside")
		for _, words := range [][]string{{"test", "-c", "-o", program, "./" + folder}, {"build", "-o", helper, "./test/inside"}} {
			if out, err := exec.Command("go", words...).CombinedOutput(); err != nil {
				return "", fmt.Errorf("go %s: %s", strings.Join(words, " "), out)
			}
		}
		os.Setenv("BERTH_INSIDE", helper)
		r.programs[folder] = program
	}
	return r.programs[folder], nil
}
