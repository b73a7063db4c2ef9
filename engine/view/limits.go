package view

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/engine/plan"
)

// LimitNow is a file of the cgroup, as it was set and as it reads.
type LimitNow struct {
	File, Now string
	// Set and Pointer are the config's value and its entry. They are empty where something else has
	// set the limit: berth update, systemctl set-property, systemd's own default (DefaultTasksMax).
	Set, Pointer string
}

// limitsNow reads the limits of a cgroup: those that the config has set, and all others that
// something has set since.
func limitsNow(g *cgroup.Group, writes []ledger.Write) []LimitNow {
	var limits []LimitNow
	for _, w := range writes {
		now, err := g.ReadFile(w.File)
		if err != nil {
			now = "unreadable: " + err.Error()
		}
		limits = append(limits, LimitNow{File: w.File, Set: w.Value, Now: strings.TrimSpace(now), Pointer: plan.ResourcesAt + w.Pointer})
	}
	for _, file := range limitFiles(g) {
		if slices.ContainsFunc(writes, func(w ledger.Write) bool { return w.File == file }) {
			continue
		}
		now, err := g.ReadFile(file)
		if err != nil || ledger.Unset(file, now) || inherited(g, file, now) {
			continue
		}
		limits = append(limits, LimitNow{File: file, Now: strings.TrimSpace(now)})
	}
	return limits
}

// limitFiles are the files of limits that the cgroup may have.
func limitFiles(g *cgroup.Group) []string {
	var files []string
	sizes, _ := g.Files("hugetlb") // none without the controller
	for _, file := range ledger.LimitFiles() {
		before, after, sized := strings.Cut(file, "<size>")
		if !sized {
			files = append(files, file)
			continue
		}
		for _, name := range sizes {
			size, ok := strings.CutPrefix(name, before)
			if size, ok2 := strings.CutSuffix(size, after); ok && ok2 && !strings.Contains(size, ".") {
				files = append(files, name)
			}
		}
	}
	return files
}

// inherited reports whether the value is the one that the cgroup began with, its parent's.
func inherited(g *cgroup.Group, file, now string) bool {
	controller, _, _ := strings.Cut(file, ".")
	if h := g.Host().Controller(controller); !ledger.Inherited(file) || h == nil || h.Version != 1 {
		return false
	}
	parents, err := os.ReadFile(filepath.Join(filepath.Dir(g.Directory(controller)), file))
	return err == nil && strings.TrimSpace(string(parents)) == strings.TrimSpace(now)
}
