package container

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/internal/proc/procs"
	"golang.org/x/sys/unix"
)

// others lists the living processes in the cgroup of a container, once its first process has
// ended, that are not the container's. With a pid namespace of its own, all of its processes
// have ended with the first (pid_namespaces(7)). Without one nothing tells its processes from
// others, but other containers are on record.
func (c *Container) others(g *cgroup.Group) ([]int, error) {
	pids, err := living(g)
	if err != nil || len(pids) == 0 {
		return nil, err
	}
	if c.ownPids() {
		if abandoned(g) { // an exec that was too late
			return nil, nil
		}
		return living(g)
	}
	ids, err := c.runtime.List()
	if err != nil {
		return nil, err
	}
	root, err := c.runtime.openRoot()
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	var others []int
	for _, id := range ids {
		if id == c.ID {
			continue
		}
		other, err := c.runtime.open(root, id)
		if err != nil {
			continue // deleted meanwhile
		}
		below := other.reload() == nil && within(other.Cgroup.Path, c.Cgroup.Path)
		other.Close()
		if below && other.Alive() {
			others = append(others, other.Pid)
		}
	}
	return others, nil
}

// within reports whether a cgroup is another one or below it.
func within(path, top string) bool {
	return path != "" && (path == top || strings.HasPrefix(path, strings.TrimSuffix(top, "/")+"/"))
}

// living lists the processes of a cgroup that have not ended.
func living(g *cgroup.Group) ([]int, error) {
	pids, err := g.AllProcs()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var alive []int
	for _, pid := range pids {
		if !ended(pid) {
			alive = append(alive, pid)
		}
	}
	return alive, err
}

// processNames names some processes for a message.
func processNames(pids []int) string {
	text := "process"
	if len(pids) > 1 {
		text = "processes"
	}
	for i, pid := range pids[:min(len(pids), 3)] {
		if i > 0 {
			text += ","
		}
		text += " " + strconv.Itoa(pid)
		if s, err := procs.ReadStat(pid); err == nil {
			// It is the process's own word, and may hold anything.
			text += " (" + strings.Trim(strconv.Quote(s.Name), `"`) + ")"
		}
	}
	if more := len(pids) - 3; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
