package neighbour

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/berth-runtime/berth/internal/proc/procs"
)

// standsStill reports whether the payload can do nothing just now, as it is paused or written down.
func (t *trial) standsStill() bool {
	if s, err := procs.ReadStat(t.payload); err == nil && (s.State == 'T' || s.State == 't') {
		return true
	}
	if t.spec.Linux.CgroupsPath == "" {
		return false
	}
	for _, h := range t.s.hierarchies() {
		for file, thawed := range map[string]string{"freezer.state": "THAWED", "cgroup.freeze": "0"} {
			if text := read(filepath.Join(h.Dir, t.spec.Linux.CgroupsPath, file)); len(text) > 0 && strings.TrimSpace(string(text)) != thawed {
				return true
			}
		}
	}
	return false
}

// thaw lets what is frozen end, where the engine has not.
func (t *trial) thaw() {
	if t.spec.Linux.CgroupsPath == "" {
		return
	}
	for _, h := range t.s.hierarchies() {
		_ = filepath.WalkDir(filepath.Join(h.Dir, t.spec.Linux.CgroupsPath), func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				_ = os.WriteFile(filepath.Join(path, "freezer.state"), []byte("THAWED"), 0)
				_ = os.WriteFile(filepath.Join(path, "cgroup.freeze"), []byte("0"), 0)
			}
			return nil
		})
	}
}
