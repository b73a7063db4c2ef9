package doctor

import (
	"strings"
	"testing"
)

// Containers of all engines are counted; where they have a place, those elsewhere are found, with
// the setting of their engine.
func TestContainers(t *testing.T) {
	at := func(groups ...string) map[string]string {
		files := map[string]string{"proc/self/ns/": ""}
		for _, g := range groups {
			files["sys/fs/cgroup"+g+"/cgroup.events"] = "populated 1\n"
		}
		return files
	}
	running := at("/machine.slice/libpod-1.scope", "/system.slice/docker-2.scope", "/system.slice/docker-3.scope", "/berth/4")
	m := machine(t, 0, with(modern, running))
	f := find(m.Examine(), "containers", Fine)
	if f == nil || f.Found != "berth 1, docker 2, podman 1" {
		t.Fatalf("%+v", f)
	}
	if f := find(m.Examine(), "place of containers", Note); f != nil {
		t.Errorf("there is no place for them: %+v", f)
	}
	m = machine(t, 0, with(modern, running, map[string]string{"etc/berth/berth.toml": "cgroup-parent = \"/machine\"\n"}))
	var said []string
	for _, f := range m.Examine() {
		if f.Check == "place of containers" {
			said = append(said, f.Found+" "+steps(&f))
		}
	}
	if len(said) != 2 || !strings.HasPrefix(said[0], "outside of /machine.slice: /berth/4 berth: create it without a cgroupsPath") ||
		!strings.HasPrefix(said[1], "outside of /machine.slice: /system.slice/docker-2.scope, /system.slice/docker-3.scope docker: set \"cgroup-parent\": \"machine.slice\"") {
		t.Errorf("%q", said)
	}
	m = machine(t, 0, with(modern, map[string]string{"etc/berth/berth.toml": "cgroup-parnt = \"/machine\"\n"}))
	if f := find(m.Examine(), "settings", Gap); f == nil || !strings.Contains(f.Found, "is it cgroup-parent?") {
		t.Errorf("%+v", f)
	}
	if f := find(machine(t, 1000, with(modern, running)).Examine(), "containers", Fine); f != nil {
		t.Errorf("an ordinary user is told of the node's: %+v", f)
	}
}
