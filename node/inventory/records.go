package inventory

import (
	"os"
	"strings"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/internal/json"
	"github.com/berth-runtime/berth/internal/settings"
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
		for _, id := range folders(root + dir) {
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
	if text, err := os.ReadFile(root + settings.File); err == nil {
		if s, err := settings.Parse(settings.File, string(text)); err == nil && s.Root != "" {
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
			for _, name := range folders(root + dir) {
				if strings.HasPrefix(name, before) {
					next = append(next, dir+"/"+name)
				}
			}
		}
		dirs = next
	}
	return dirs
}

func folders(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// cgroup is the one that the record names; "" for none. berth and runc call the file state.json,
// crun calls it status.
func (r *record) cgroup(host *cgroup.Host) string {
	text, err := os.ReadFile(r.dir + "/state.json")
	if err != nil {
		if text, err = os.ReadFile(r.dir + "/status"); err != nil {
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
