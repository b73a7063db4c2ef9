package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ours is the contender that the others are compared with.
const ours = "berth"

// engine is a contender: an OCI runtime with a state folder of its own.
type engine struct {
	name string
	path string
	root string
}

// findEngines gives ours first, and those peers that are installed.
func findEngines(bin, dir string) ([]engine, error) {
	path, err := filepath.Abs(filepath.Join(bin, ours))
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("%w (make build)", err)
	}
	all := []engine{{name: ours, path: path}}
	for _, name := range []string{"crun", "runc"} {
		path, err := exec.LookPath(name)
		if err != nil {
			progress("%s is not installed, its columns stay empty", name)
			continue
		}
		all = append(all, engine{name: name, path: path})
	}
	if len(all) == 1 {
		return nil, errors.New("neither runc nor crun is installed")
	}
	for i := range all {
		all[i].root = filepath.Join(dir, "state-"+all[i].name)
	}
	return all, nil
}

// command is a call of the engine with its state folder.
func (e engine) command(args ...string) []string {
	return append([]string{e.path, "--root", e.root}, args...)
}

// version is the first line of --version without the name.
func version(path, flag string) string {
	out, err := exec.Command(path, flag).CombinedOutput()
	if err != nil {
		return "unknown"
	}
	line, _, _ := strings.Cut(string(out), "\n")
	fields := strings.Fields(line)
	if i := len(fields) - 1; i >= 0 {
		for _, f := range fields {
			if f != "" && (f[0] >= '0' && f[0] <= '9') {
				return f
			}
		}
		return fields[i]
	}
	return "unknown"
}
