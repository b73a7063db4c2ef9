package cgrouptool

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/berth-runtime/berth/cgroup"
)

// Access says who gets a new cgroup, by the rules of cgcreate(1).
// What is nil stays as the kernel makes it.
type Access struct {
	Admin *Account // may set limits and make children: -a
	Tasks *Account // may put processes in: -t

	DirMode, FileMode, TasksMode *fs.FileMode // -d, -f, -s
}

// Create makes a cgroup, or takes part in one that is there already, and tells
// which directories are new.
func (t *Tools) Create(target Target, access Access) (made []string, err error) {
	path, options, err := t.place(target)
	if err != nil {
		return nil, err
	}
	options = append(options, cgroup.Supervisor("supervisor")) // of the unit that is delegated to us
	if target.Controllers == nil {
		options = append(options, cgroup.WherePermitted())
	} else if enable := t.onUnified(target.Controllers); enable != nil {
		options = append(options, cgroup.Enable(enable...))
	}
	record := t.marked(path)
	g, err := t.Host.Create(path, append(options, cgroup.Made(record))...)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	for _, dir := range g.Made() {
		if slices.Contains(record, dir) {
			continue
		}
		made = append(made, dir)
		if err := mark(dir); err != nil {
			t.Warn(fmt.Sprintf("%s cannot be marked as created by berth (%v): later commands need --force", dir, err))
		}
	}
	if len(made) == 0 && !t.Force {
		if err := t.mayChange("create", g); err != nil {
			t.Warn("it is there already: " + err.Error())
		}
	}
	return made, t.hand(g, access)
}

// onUnified picks the controllers that version 2 has here: they are to be
// enabled for the new cgroup. nil leaves the choice to package cgroup.
func (t *Tools) onUnified(controllers []string) []string {
	var list []string
	for _, name := range homes(t.Host, controllers) {
		if h := t.Host.Controller(name); h != nil && h.Version == 2 {
			list = append(list, name)
		}
	}
	if list == nil && len(controllers) == 1 && controllers[0] == "unified" {
		return []string{} // ":path" asks for a cgroup without any
	}
	return list
}

// hand gives the group's directories and files to others.
func (t *Tools) hand(g *cgroup.Group, access Access) error {
	if access == (Access{}) {
		return nil
	}
	if err := t.mayChange("hand over", g); err != nil {
		return err
	}
	for _, h := range t.in(g) {
		dir := t.dir(h, g.Path())
		if err := access.apply(dir, fs.ModeDir, access.Admin, access.DirMode); err != nil {
			return err
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return fmt.Errorf("hand over %s: %w", dir, err)
		}
		for _, entry := range entries {
			account, mode := access.Admin, access.FileMode
			switch entry.Name() {
			case "tasks", "cgroup.procs", "cgroup.threads":
				// The right to set limits is not one to put processes in: of version 1, a user who
				// has two such files can take their processes out of another's limits.
				account = access.Tasks
				if access.TasksMode != nil {
					mode = access.TasksMode
				}
			}
			if entry.IsDir() {
				continue
			}
			if err := access.apply(filepath.Join(dir, entry.Name()), entry.Type(), account, mode); err != nil {
				return err
			}
		}
	}
	return nil
}

// apply changes the owner and the mode of one file. As with cgcreate, a mode
// for files keeps the kernel's word on what can be read or written at all.
func (a Access) apply(path string, kind fs.FileMode, account *Account, mode *fs.FileMode) error {
	if account != nil {
		if err := os.Chown(path, account.UID, account.GID); err != nil {
			return fmt.Errorf("hand over: %w", err)
		}
	}
	if mode == nil {
		return nil
	}
	wanted := *mode
	if kind&fs.ModeDir == 0 {
		st, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("hand over: %w", err)
		}
		able := st.Mode().Perm() & 0o600
		wanted &= able | able>>3 | able>>6
	}
	if err := os.Chmod(path, wanted); err != nil {
		return fmt.Errorf("hand over: %w", err)
	}
	return nil
}
