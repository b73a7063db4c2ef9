package cgroup

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/internal/proc/mountinfo"
	"golang.org/x/sys/unix"
)

// Host is what this mount namespace shows of the kernel's hierarchies.
type Host struct {
	// Timeout bounds what waits for the kernel: freezing, thawing, killing, removing.
	Timeout time.Duration
	// Shares is the formula by which Set turns CPU shares into a version 2 weight.
	Shares ledger.SharesFormula

	hierarchies []Hierarchy
	root        string // "" for the machine, a directory for a copied or made-up tree
	hugeOnce    sync.Once
	huge        []string // sizes of huge pages
}

// Mode is the name of a layout; nothing in this package depends on it but defaults.
type Mode int

// The layouts. Hybrid has version 2 mounted beside version 1 controllers.
const (
	None Mode = iota
	Legacy
	Hybrid
	Unified
)

func (m Mode) String() string {
	switch m {
	case Legacy:
		return "legacy"
	case Hybrid:
		return "hybrid"
	case Unified:
		return "unified"
	}
	return "none"
}

// Detect finds the hierarchies by this process's mount table and by asking
// each mount what it is. A host where nothing is mounted is no error here;
// Create will say ErrNotMounted.
func Detect() (*Host, error) { return DetectIn("") }

// tableSize holds the mount table of most hosts; the buffer grows with a busy one's.
// It is no constant, so that the buffer is not on the stack: there it would be
// cleared, four pages of it, and the stack copied to one twice as large.
var tableSize = 16 << 10

// DetectIn is Detect on a tree of files below dir, with its own
// proc/self/mountinfo: a copy of another machine's, or one made for a test.
func DetectIn(dir string) (*Host, error) {
	h := &Host{Timeout: 10 * time.Second, root: strings.TrimSuffix(dir, "/")}
	if h.root != "" || !h.findInPlace() {
		if err := h.findInTable(); err != nil {
			return nil, err
		}
	}
	for i := range h.hierarchies {
		u := &h.hierarchies[i]
		if u.Version != 2 {
			continue
		}
		path := u.dir + "/cgroup.controllers"
		text, err := readWhole(unix.AT_FDCWD, path, make([]byte, 512))
		if err != nil {
			return nil, &Error{Op: "read", Path: path, Err: err}
		}
		u.Controllers = strings.Fields(string(text))
	}
	return h, nil
}

// findInTable looks for the hierarchies wherever they are mounted.
func (h *Host) findInTable() error {
	path := h.root + "/proc/self/mountinfo"
	text, err := readWhole(unix.AT_FDCWD, path, make([]byte, tableSize))
	if err != nil {
		return &Error{Op: "read", Path: path, Err: err}
	}
	h.adopt(mountinfo.Parse(string(text), fileSystems...))
	return nil
}

// Linux calls a cpuset file system mounted on its own so.
var fileSystems = []string{"cgroup2", "cgroup", "cpuset"}

// findInPlace looks for the hierarchies where they are on nearly all machines, without the table of
// all mounts, which is as long as there are containers. It reports whether that is all there is to
// find: each hierarchy of the kernel's is there, whole and writable, so that no other mount of it
// could be preferred.
func (h *Host) findInPlace() bool {
	mounts, err := mountinfo.Below("/sys/fs/cgroup", fileSystems...)
	if err != nil {
		return false
	}
	h.adopt(mounts)
	for i := range h.hierarchies {
		if h.hierarchies[i].ReadOnly || h.hierarchies[i].Root != "/" {
			return false
		}
	}
	text, err := readWhole(unix.AT_FDCWD, "/proc/self/cgroup", make([]byte, 1024))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		_, line, _ = strings.Cut(line, ":")
		names, _, _ := strings.Cut(line, ":")
		if !slices.ContainsFunc(h.hierarchies, func(f Hierarchy) bool { return f.holds(names) }) {
			return false
		}
	}
	return true
}

// adopt keeps the best visible mount of each hierarchy.
func (h *Host) adopt(mounts []mountinfo.Entry) {
	found := make([]Hierarchy, 0, len(mounts))
	for _, m := range mounts {
		// A later mount on the same place hides the earlier.
		found = slices.DeleteFunc(found, func(f Hierarchy) bool { return f.Mountpoint == m.Point })
		c := hierarchyOf(m)
		c.dir = h.root + strings.TrimSuffix(m.Point, "/")
		if c.dir == "" {
			c.dir = "/"
		}
		if c.Version == 1 && len(c.Controllers) == 0 && c.Name == "" {
			continue
		}
		same := slices.IndexFunc(found, func(f Hierarchy) bool {
			return f.Version == c.Version && f.Name == c.Name && slices.Equal(f.Controllers, c.Controllers)
		})
		if same >= 0 && !preferable(&c, &found[same]) {
			continue
		}
		// What the table lists may lie under another mount (a tmpfs over
		// /sys/fs/cgroup): a mkdir there would make an ordinary directory.
		if h.root == "" && !isCgroupMount(c.dir, c.Version) {
			continue
		}
		if same >= 0 {
			found[same] = c
		} else {
			found = append(found, c)
		}
	}
	h.hierarchies = found
}

func isCgroupMount(dir string, version int) bool {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return false
	}
	if version == 2 {
		return st.Type == unix.CGROUP2_SUPER_MAGIC
	}
	return st.Type == unix.CGROUP_SUPER_MAGIC
}

// Hierarchies lists what was found, in the order of the mount table.
func (h *Host) Hierarchies() []*Hierarchy {
	list := make([]*Hierarchy, len(h.hierarchies))
	for i := range h.hierarchies {
		list[i] = &h.hierarchies[i]
	}
	return list
}

// Controller gives the hierarchy where the controller lives, nil if none has it.
func (h *Host) Controller(name string) *Hierarchy {
	for i := range h.hierarchies {
		if h.hierarchies[i].Has(name) {
			return &h.hierarchies[i]
		}
	}
	return nil
}

// Unified gives the version 2 hierarchy, nil if it is not mounted.
func (h *Host) Unified() *Hierarchy {
	for i := range h.hierarchies {
		if h.hierarchies[i].Version == 2 {
			return &h.hierarchies[i]
		}
	}
	return nil
}

// Mode names the layout.
func (h *Host) Mode() Mode {
	var v1, v2 bool
	for i := range h.hierarchies {
		switch {
		case h.hierarchies[i].Version == 2:
			v2 = true
		case len(h.hierarchies[i].Controllers) > 0:
			v1 = true
		}
	}
	switch {
	case v1 && v2:
		return Hybrid
	case v1:
		return Legacy
	case v2:
		return Unified
	}
	return None
}

// proc is a path below this host's /proc.
func (h *Host) proc(path string) string { return h.root + "/proc/" + path }
