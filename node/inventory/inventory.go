package inventory

import (
	"os"
	"path"
	"slices"
	"strings"

	"github.com/berth-runtime/berth/cgroup"
)

// Container is a running one.
type Container struct {
	// ID is its maker's name for it.
	ID    string `json:"id"`
	Maker Maker  `json:"maker"`
	// Runtime is the OCI runtime that keeps a record of it; "" for none that is known.
	Runtime string `json:"runtime,omitempty"`
	// Pod is the UID of the Kubernetes pod that it is in.
	Pod    string `json:"pod,omitempty"`
	Cgroup string `json:"cgroup"`
}

// Unit is the systemd service or scope that the container is or is in, by its cgroup; "" for none.
func (c *Container) Unit() string {
	for at := c.Cgroup; at != "/" && at != "."; at = path.Dir(at) {
		if name := path.Base(at); strings.HasSuffix(name, ".scope") || strings.HasSuffix(name, ".service") {
			return name
		}
	}
	return ""
}

// Name is the maker with the id, cut to the twelve characters that people know long ids by.
func (c *Container) Name() string {
	id := c.ID
	if len(id) == 64 && isID(id) {
		id = id[:12]
	}
	return string(c.Maker) + "/" + id
}

// Within reports whether the container is below a cgroup.
func (c *Container) Within(group string) bool { return within(c.Cgroup, group) }

func within(at, group string) bool {
	return at == group || strings.HasPrefix(at, strings.TrimSuffix(group, "/")+"/")
}

// Find lists the containers of a machine, by their cgroups. root is the directory that stands for
// /: "" for the machine itself.
func Find(root string, host *cgroup.Host) ([]Container, error) {
	tree := treeOf(root, host)
	if tree == nil {
		return nil, nil
	}
	w := &walk{version2: tree.Version == 2}
	if err := w.below(root + strings.TrimSuffix(tree.Mountpoint, "/")); err != nil {
		return nil, err
	}
	known := recordsIn(root)
	for i := range w.found {
		c := &w.found[i]
		if r, ok := known[c.ID]; ok {
			c.Runtime = r.runtime
			delete(known, c.ID)
		}
	}
	// The cgroups of the rest of the records, of which the walk could know nothing.
	for id, r := range known {
		at := r.cgroup(host)
		i := slices.IndexFunc(w.others, func(o other) bool { return at != "" && within(o.path, at) })
		if i < 0 {
			continue // it is not running, or has no cgroup of its own
		}
		w.found = append(w.found, Container{ID: id, Maker: r.maker, Runtime: r.runtime, Cgroup: at})
		w.others = slices.DeleteFunc(w.others, func(o other) bool { return within(o.path, at) })
	}
	w.found = append(w.found, foreign(root, w.others)...)
	slices.SortFunc(w.found, func(a, b Container) int { return strings.Compare(a.Cgroup, b.Cgroup) })
	return w.found, nil
}

// treeOf chooses the hierarchy to look at: one is enough, since all engines make a container's
// cgroup in each. systemd's own has all units; in that of a controller only those that it counts.
func treeOf(root string, host *cgroup.Host) *cgroup.Hierarchy {
	if _, err := os.Lstat(root + "/run/systemd/system"); err == nil && host.Mode() != cgroup.Unified {
		for _, h := range host.Hierarchies() {
			if h.Name == "systemd" {
				return h
			}
		}
		if h := host.Unified(); h != nil {
			return h
		}
	}
	for _, controller := range []string{"pids", "memory", "cpu"} { // a cgroup of pids has the fewest files to be passed over
		if h := host.Controller(controller); h != nil {
			return h
		}
	}
	return host.Unified()
}

// foreign finds containers of unknown makers among cgroups: those with processes in another pid
// namespace than ours. Where one namespace is in several cgroups, as under an init system that runs
// in a container, the container is where they meet.
func foreign(root string, others []other) []Container {
	own, err := os.Readlink(root + "/proc/self/ns/pid")
	if err != nil {
		return nil
	}
	at := map[string]string{}
	for _, o := range others {
		// Browsers and the like have pid namespaces, too, and are no containers of the node.
		if within(o.path, "/user.slice") {
			continue
		}
		theirs := map[string]bool{}
		mixed := false
		for _, pid := range o.pids {
			ns, err := os.Readlink(root + "/proc/" + pid + "/ns/pid")
			switch {
			case err != nil:
			case ns == own:
				mixed = true
			default:
				theirs[ns] = true
			}
		}
		if mixed && !strings.HasSuffix(o.path, ".service") && !strings.HasSuffix(o.path, ".scope") {
			continue // one of the host's, into which a container without a cgroup of its own was moved
		}
		for ns := range theirs {
			if before, ok := at[ns]; ok {
				at[ns] = meet(before, o.path)
			} else {
				at[ns] = o.path
			}
		}
	}
	var list []Container
	for _, place := range at {
		inside := func(c Container) bool { return c.Within(place) || within(place, c.Cgroup) }
		if place == "/" || slices.ContainsFunc(list, inside) {
			continue
		}
		list = append(list, Container{ID: path.Base(place), Maker: Unknown, Cgroup: place})
	}
	return list
}

// meet is the cgroup that two are below.
func meet(a, b string) string {
	for !within(b, a) {
		a = path.Dir(a)
	}
	return a
}
