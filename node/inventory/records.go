package inventory

import (
	"io"
	"os"
	"slices"
	"strings"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/internal/json"
	"github.com/berth-runtime/berth/internal/settings"
	"golang.org/x/sys/unix"
)

// places are where OCI runtimes keep a directory for each container, by who calls them; * is any
// directory. Docker names its after the runtime.
var places = []struct {
	dir     string
	runtime string
	maker   Maker
}{
	{"/run/berth", "berth", Berth},
	{"/run/runc", "runc", Runc},
	{"/run/crun", "crun", Crun},
	{"/run/containerd/berth/*", "berth", Containerd},
	{"/run/containerd/runc/*", "runc", Containerd},
	{"/run/docker/runtime-*/*", "", Docker},
	{"/run/user/*/berth", "berth", Berth},
	{"/run/user/*/runc", "runc", Runc},
	{"/run/user/*/crun", "crun", Crun},
}

// record is what a runtime keeps of a container.
type record struct {
	dir     string
	runtime string
	maker   Maker
}

// recordsIn lists the records of a machine, by the ids of containers.
func recordsIn(root string) map[string]record {
	known := map[string]record{}
	in := func(dir, runtime string, maker Maker) {
		for _, id := range directories(root + dir) {
			known[id] = record{root + dir + "/" + id, runtime, maker}
		}
	}
	for _, p := range places {
		for _, dir := range expand(root, strings.Split(strings.TrimPrefix(p.dir, "/"), "/")) {
			runtime := p.runtime
			if runtime == "" {
				_, runtime, _ = strings.Cut(dir, "/runtime-")
				runtime, _, _ = strings.Cut(runtime, "/")
			}
			in(dir, runtime, p.maker)
		}
	}
	if text, err := settings.ReadFile(root + settings.File); err == nil {
		if s, err := settings.Parse(settings.File, text); err == nil && s.Root != "" {
			in(s.Root, "berth", Berth)
		}
	}
	return known
}

// expand gives the directories that a pattern stands for.
func expand(root string, pattern []string) []string {
	dirs := []string{""}
	for _, part := range pattern {
		var next []string
		for _, dir := range dirs {
			before, any := strings.CutSuffix(part, "*")
			if !any {
				next = append(next, dir+"/"+part)
				continue
			}
			for _, name := range directories(root + dir) {
				if strings.HasPrefix(name, before) {
					next = append(next, dir+"/"+name)
				}
			}
		}
		dirs = next
	}
	return dirs
}

// directories lists those in one, whose path no link is in the last part of: some are a user's.
func directories(dir string) []string {
	fd, err := unix.Open(dir, directory, 0)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), dir)
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names
}

// largestRecord is more than any runtime keeps of a container.
const largestRecord = 1 << 20

// readRecord reads a file that may be a user's, and so anything: a FIFO without a writer, a link to
// a device, a file without an end.
func readRecord(name string) ([]byte, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, unix.EINVAL
	}
	return io.ReadAll(io.LimitReader(f, largestRecord))
}

// cgroup is the one that the record names; "" for none. berth and runc call the file state.json,
// crun calls it status.
func (r *record) cgroup(host *cgroup.Host) string {
	text, err := readRecord(r.dir + "/state.json")
	if err != nil {
		if text, err = readRecord(r.dir + "/status"); err != nil {
			return ""
		}
	}
	found := ""
	d := json.NewDecoder(text)
	for d.Object(); d.Next(); {
		switch d.Key() {
		case "cgroup": // berth
			for d.Object(); d.Next(); {
				if d.Key() == "path" {
					found = d.String()
				} else {
					d.Skip()
				}
			}
		case "cgroup_paths": // runc: directories by controller
			for d.Object(); d.Next(); {
				if at := belowMount(host, d.String()); at != "" {
					found = at
				}
			}
		case "cgroup-path": // crun
			found = d.String()
		default:
			d.Skip()
		}
	}
	if d.Close() != nil || found == "/" || found == "" {
		return ""
	}
	return "/" + strings.Trim(found, "/")
}

// belowMount makes of a directory in a cgroup file system the path of the cgroup.
func belowMount(host *cgroup.Host, dir string) string {
	for _, h := range host.Hierarchies() {
		if below, ok := strings.CutPrefix(dir, strings.TrimSuffix(h.Mountpoint, "/")+"/"); ok {
			return "/" + below
		}
	}
	return ""
}
