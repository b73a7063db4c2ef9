package cgrouptool

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/cgroup/ledger"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// Value is a file of a cgroup, or a field of the OCI resources, and what it holds.
type Value struct{ Name, Text string }

// Setting is a value for a file of a cgroup.
type Setting struct{ Name, Value string }

// candidates lists where a file may be in the hierarchies of a group: at its
// controller, and among what version 2 has without one (cpu.stat, io.pressure).
func (t *Tools) candidates(g *cgroup.Group, name string) []string {
	var list []string
	controller, rest, _ := strings.Cut(name, ".")
	for _, h := range t.in(g) {
		file := name
		switch {
		case h.Version == 2:
		case !h.Has(controller) && controller != "cgroup" && rest != "":
			continue // a v1 directory has the files of its controllers only
		case h.NoPrefix && h.Has(controller):
			file = rest
		}
		list = append(list, filepath.Join(t.dir(h, g.Path()), file))
	}
	return list
}

// HasFile reports whether the group has a file of that name.
func (t *Tools) HasFile(g *cgroup.Group, name string) bool {
	_, _, err := t.find(g, name)
	return err == nil
}

// find finds a file by its name.
func (t *Tools) find(g *cgroup.Group, name string) (path string, mode fs.FileMode, err error) {
	if name == "" || strings.ContainsAny(name, "/\x00\n") {
		return "", 0, fmt.Errorf("%q is not the name of a file in a cgroup", name)
	}
	for _, path := range t.candidates(g, name) {
		if st, err := os.Stat(path); err == nil && !st.IsDir() {
			return path, st.Mode(), nil
		}
	}
	return "", 0, fmt.Errorf("%s has no %s%s", g.Path(), name, t.elsewhere(name))
}

// elsewhere hints at a field that says on this host what the name of a file
// says on the other version.
func (t *Tools) elsewhere(name string) string {
	for _, e := range ledger.Table() {
		if strings.HasPrefix(e.Field, "/unified") || strings.Contains(e.Field, "*") {
			continue
		}
		for _, place := range []*ledger.Place{&e.V1, &e.V2} {
			for _, file := range place.Files {
				if file == name {
					return " on this host: " + fieldName(e.Field) + " is the same on either version"
				}
			}
		}
	}
	return ""
}

// fieldName is the spelling of a field of the resources object on a command
// line: memory.limit for /memory/limit.
func fieldName(pointer string) string {
	return strings.ReplaceAll(strings.TrimPrefix(pointer, "/"), "/", ".")
}

// Get reads files, and fields of the OCI resources as this host holds them. A
// name that is both means the file.
func (t *Tools) Get(g *cgroup.Group, names []string) ([]Value, error) {
	var values []Value
	for _, name := range names {
		path, _, err := t.find(g, name)
		if err != nil {
			text, known, fieldErr := t.field(g, name)
			switch {
			case fieldErr != nil:
				return values, fieldErr
			case known:
				values = append(values, Value{name, text})
				continue
			}
			return values, err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return values, err
		}
		values = append(values, Value{name, strings.TrimSuffix(string(text), "\n")})
	}
	return values, nil
}

// GetAll reads all files of a group that can be read: of these controllers, or
// of all where there are none. "cgroup" stands for the core's own files.
func (t *Tools) GetAll(g *cgroup.Group, controllers []string) ([]Value, error) {
	var values []Value
	for _, h := range t.in(g) {
		dir := t.dir(h, g.Path())
		entries, err := os.ReadDir(dir)
		if err != nil {
			return values, err
		}
		for _, entry := range entries {
			name := entry.Name()
			if entry.IsDir() || !wanted(h, name, controllers) {
				continue
			}
			if info, err := entry.Info(); err != nil || info.Mode().Perm()&0o444 == 0 {
				continue // cgroup.kill, memory.force_empty
			}
			// Files of what is switched off (psi=0) are there and answer EOPNOTSUPP.
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err == nil {
				values = append(values, Value{name, strings.TrimSuffix(string(text), "\n")})
			}
		}
	}
	return values, nil
}

// wanted reports whether a file belongs to one of the controllers.
func wanted(h *cgroup.Hierarchy, name string, controllers []string) bool {
	prefix, _, dotted := strings.Cut(name, ".")
	for _, c := range controllers {
		switch {
		case prefix == c:
			return true
		case c == "cgroup" && (!dotted || h.NoPrefix) && h.Version == 1:
			return true
		case h.NoPrefix && h.Has(c) && prefix != "cgroup":
			return true
		}
	}
	return len(controllers) == 0
}

// Set changes a group: first the resources, of which each is checked before any
// is written, then files as they are named.
func (t *Tools) Set(g *cgroup.Group, resources *specs.LinuxResources, files []Setting) (cgroup.Report, error) {
	writes := make([]ledger.Write, 0, len(files))
	for _, s := range files {
		w, err := t.write(g, s)
		if err != nil {
			return cgroup.Report{}, err
		}
		writes = append(writes, w)
	}
	report, err := g.Set(resources)
	if err != nil {
		return report, err
	}
	differences, err := g.Apply(writes)
	report.Differences = append(report.Differences, differences...)
	return report, err
}

// write finds out where a file is written. Its controller may still have to be
// enabled, which package cgroup does, so it need not be there yet.
func (t *Tools) write(g *cgroup.Group, s Setting) (ledger.Write, error) {
	controller, _, _ := strings.Cut(s.Name, ".")
	w := ledger.Write{Controller: controller, File: s.Name, Value: s.Value}
	switch s.Name {
	case "cgroup.procs", "cgroup.threads", "tasks":
		return w, fmt.Errorf("set %s: processes are moved by berth cgroup classify", s.Name)
	}
	path, mode, err := t.find(g, s.Name)
	home := t.Host.Controller(controller)
	if err != nil && home != nil && home.Version == 2 && controller != "cgroup" {
		w.V2 = true
		return w, nil
	}
	if err != nil {
		return w, err
	}
	for _, h := range t.in(g) {
		if filepath.Dir(path) == t.dir(h, g.Path()) {
			home = h
			w.V2 = h.Version == 2
		}
	}
	if !w.V2 && !home.Has(controller) {
		w.Controller = home.String() // notify_on_release and such
	}
	// What the kernel rounds or ignores is told; words and lists come back in many spellings.
	number := strings.TrimRight(s.Value, "kKmMgG") // as memparse reads sizes
	w.ReadBack = mode.Perm()&0o444 != 0 && strings.Trim(number, "0123456789") == ""
	return w, nil
}
