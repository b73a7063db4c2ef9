package container

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/internal/json"
	"golang.org/x/sys/unix"
)

// halfMade says what a missing record means.
func halfMade(id string, err error) error {
	var syntax *json.SyntaxError
	var fault json.Fault
	switch {
	case errors.As(err, &syntax), errors.As(err, &fault):
		return fmt.Errorf("%w (berth delete --force removes the container, as far as possible without it)", err)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return fmt.Errorf("container %s is half-created: its %s is missing (another command is creating it, or was killed; berth delete --force removes it)", id, recordFile)
}

// withoutRecord decides whether a directory whose record can't be read may be removed by force.
// It has to be a container's, and no process may be left in the cgroup that its config names, or in
// one that has its id for a name: those could not be ended any more once the directory is gone.
func (c *Container) withoutRecord(why error) error {
	root, err := c.runtime.openRoot()
	if err != nil {
		return err
	}
	ours := marked(root)
	unix.Close(root)
	if foreign := c.foreign(); errors.Is(why, errForeign) || !ours || len(foreign) > 0 {
		return fmt.Errorf("%w; %s/%s is not known to be a container's, and stays", why, c.runtime.Root, c.ID)
	}
	place := ""
	if s, err := c.Config(); err == nil && s.Linux != nil {
		place = s.Linux.CgroupsPath
	}
	pids, err := processesOf(c.ID, place)
	if err != nil {
		return fmt.Errorf("%w; the processes left in it can't be listed: %w", why, err)
	}
	if len(pids) > 0 {
		return fmt.Errorf("%w; its cgroup is in use by %s: end that first, otherwise it would be left without a container", why, processNames(pids))
	}
	if !errors.Is(why, fs.ErrNotExist) {
		c.runtime.warn("%v; deleting the rest without it", why)
	}
	return nil
}

// processesOf lists living processes in a cgroup that could be a container's: the one that its
// config names, as a path or a unit (slice:prefix:name), or one that is called after it.
func processesOf(id, cgroupsPath string) ([]int, error) {
	names := []string{id}
	if _, unit, ok := strings.Cut(cgroupsPath, ":"); ok {
		names = append(names, strings.ReplaceAll(unit, ":", "-"))
		cgroupsPath = ""
	}
	list, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, entry := range list {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		text, err := readFileAt(unix.AT_FDCWD, "/proc/"+entry.Name()+"/cgroup")
		if err != nil {
			continue // it has ended
		}
		if ended(pid) {
			continue
		}
		for line := range strings.Lines(string(text)) {
			_, at, _ := strings.Cut(line, ":")
			_, at, _ = strings.Cut(strings.TrimSuffix(at, "\n"), ":")
			if calledFor(at, names) || cgroupsPath != "" && strings.HasSuffix("/"+at+"/", path.Join("/", cgroupsPath)+"/") {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids, nil
}

// calledFor reports whether a part of a cgroup's path is one of the names, or ends in one behind a
// dash, as berth-ID and docker-ID.scope do.
func calledFor(at string, names []string) bool {
	for part := range strings.SplitSeq(at, "/") {
		part = strings.TrimSuffix(part, ".scope")
		if slices.ContainsFunc(names, func(name string) bool { return part == name || strings.HasSuffix(part, "-"+name) }) {
			return true
		}
	}
	return false
}
