package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// ours is the contender that the others are compared with.
const ours = "berth"

// engine is a contender: an OCI runtime with a state directory of its own.
type engine struct {
	name string
	path string
	what string   // where it is from, for the tables
	with []string // what executes the path, and the options before it
	root string
}

// peer is one that is given as words: the program, behind the loader and its options where
// those are needed.
func peer(name, words string) engine {
	list := strings.Fields(words)
	last := len(list) - 1
	e := engine{name: name, path: list[last], with: list[:last], what: "runc's module, static, with libseccomp"}
	if last > 0 {
		e.what = "newest Debian's, dynamic, which takes it 2 to 3 ms"
	}
	return e
}

// findEngines gives ours first, and those peers that are installed.
func findEngines(bin, dir string, peers map[string]string) ([]engine, error) {
	path, err := filepath.Abs(filepath.Join(bin, ours))
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("%w (make build)", err)
	}
	all := []engine{{name: ours, path: path}}
	for _, name := range []string{"crun", "runc"} {
		if words := peers[name]; words != "" {
			all = append(all, peer(name, words))
			continue
		}
		path, err := exec.LookPath(name)
		if err != nil {
			progress("%s is not installed, its columns stay empty", name)
			continue
		}
		all = append(all, engine{name: name, path: path, what: packaged()})
	}
	if len(all) == 1 {
		return nil, errors.New("neither runc nor crun is installed")
	}
	for i := range all {
		all[i].root = filepath.Join(dir, "state-"+all[i].name)
	}
	return all, nil
}

// command is a call of the engine with its state directory.
func (e engine) command(args ...string) []string {
	return append(e.words("--root", e.root), args...)
}

// words is the program with arguments.
func (e engine) words(args ...string) []string {
	return append(append(slices.Clone(e.with), e.path), args...)
}

// program is a path that can be executed without more, for shims: a script where the engine
// is not one itself.
func (e engine) program(dir string) (string, error) {
	if len(e.with) == 0 {
		return e.path, nil
	}
	path := filepath.Join(dir, e.name)
	script := "#!/bin/sh\nexec " + strings.Join(e.words(`"$@"`), " ") + "\n"
	return path, os.WriteFile(path, []byte(script), 0o755)
}

// packaged says that something is the distribution's own.
func packaged() string {
	return strings.Trim(fieldOf("/etc/os-release", "PRETTY_NAME"), `"`) + "'s package"
}

// version is the first line of --version without the name.
func version(words []string) string {
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
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
