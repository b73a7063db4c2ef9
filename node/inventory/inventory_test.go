package inventory

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/cgroup"
	"golang.org/x/sys/unix"
)

const id = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// The names are those that each engine gives, as its documentation has them.
func TestNames(t *testing.T) {
	for cgroup, want := range map[string]string{
		"/machine.slice/libpod-" + id + ".scope":                                           "podman " + id,
		"/libpod_parent/libpod-" + id:                                                      "podman " + id,
		"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + id + ".scope": "podman " + id,
		"/system.slice/web.service/libpod-payload-" + id:                                   "podman " + id,
		"/machine.slice/libpod-conmon-" + id + ".scope":                                    "",
		"/system.slice/docker-" + id + ".scope":                                            "docker " + id,
		"/docker/" + id:                                                                    "docker " + id,
		"/docker/buildkit/ab0ljlq2nksfp6uyqkmtx98vb":                                       "docker ab0ljlq2nksfp6uyqkmtx98vb",
		"/docker/buildkit":                                                                 "",
		"/system.slice/docker.service":                                                     "",
		"/default/docker-registry":                                                         "",
		"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice/cri-containerd-" + id + ".scope": "containerd " + id + " in 1-2",
		"/machine.slice/machine-kubepods.slice/machine-kubepods-pod1_2.slice/crio-" + id + ".scope":                "cri-o " + id + " in 1-2",
		"/kubepods.slice/kubepods-pod1.slice/crio-conmon-" + id + ".scope":                                         "",
		"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice":                                 "",
		"/kubepods/besteffort/pod1-2/" + id:                                                                        "kubernetes " + id + " in 1-2",
		"/kubepods/besteffort/pod1-2/crio-" + id:                                                                   "cri-o " + id + " in 1-2",
		"/kubepods/besteffort/pod1-2":                                                                              "",
		"/kubepods/pod-x":                                                                                          "",
		"/system.slice/nerdctl-" + id + ".scope":                                                                   "containerd " + id,
		"/machine.slice/berth-web.scope":                                                                           "berth web",
		"/berth/web":                                                                                               "berth web",
		"/berth":                                                                                                   "",
		"/berth.slice/berth-node.service":                                                                          "",
		"/system.slice/runc-a.scope":                                                                               "runc a",
		"/system.slice/crun-a.scope":                                                                               "crun a",
		`/machine.slice/machine-my\x2dbox.scope`:                                                                   "systemd-nspawn my-box",
		"/machine.slice/systemd-nspawn@box.service":                                                                "systemd-nspawn box",
		`/machine.slice/machine-qemu\x2d1\x2dvm.scope`:                                                             "",
		"/lxc.payload.web":                                                                                         "lxc web",
		"/lxc.monitor.web":                                                                                         "",
		"/lxc/web":                                                                                                 "lxc web",
		"/user.slice/user-1000.slice/session-1.scope":                                                              "",
	} {
		got := ""
		if c, ok := named(filepath.Dir(cgroup), filepath.Base(cgroup)); ok {
			got = string(c.Maker) + " " + c.ID
			if c.Pod != "" {
				got += " in " + c.Pod
			}
			if c.Cgroup != cgroup {
				t.Errorf("%s became %s", cgroup, c.Cgroup)
			}
		}
		if got != want {
			t.Errorf("%s is %q, want %q", cgroup, got, want)
		}
	}
}

// tree is a machine of files.
type tree struct {
	*testing.T
	root string
	v2   bool
	pid  int
}

func machine(t *testing.T, v2 bool) *tree {
	m := &tree{T: t, root: t.TempDir(), v2: v2, pid: 100}
	if v2 {
		m.write("proc/self/mountinfo", "36 25 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
		m.write("sys/fs/cgroup/cgroup.controllers", "cpu memory pids\n")
	} else {
		m.write("proc/self/mountinfo", "40 25 0:40 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n41 25 0:41 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n")
		m.write("sys/fs/cgroup/systemd/cgroup.procs", "")
	}
	m.link("proc/self/ns/pid", "pid:[1]")
	return m
}

func (m *tree) write(name, text string) {
	m.Helper()
	file := filepath.Join(m.root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		m.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		m.Fatal(err)
	}
}

func (m *tree) link(name, to string) {
	m.Helper()
	if err := os.MkdirAll(filepath.Join(m.root, filepath.Dir(name)), 0o755); err != nil {
		m.Fatal(err)
	}
	if err := os.Symlink(to, filepath.Join(m.root, name)); err != nil {
		m.Fatal(err)
	}
}

// runs puts a process of a pid namespace into a cgroup.
func (m *tree) runs(group, namespace string) {
	m.Helper()
	m.pid++
	top := "sys/fs/cgroup/memory"
	if m.v2 {
		top = "sys/fs/cgroup"
		for at := group; at != "/"; at = filepath.Dir(at) {
			m.write(top+at+"/cgroup.events", "populated 1\nfrozen 0\n")
		}
	}
	before, _ := os.ReadFile(filepath.Join(m.root, top+group+"/cgroup.procs"))
	m.write(top+group+"/cgroup.procs", fmt.Sprintf("%s%d\n", before, m.pid))
	m.link(fmt.Sprintf("proc/%d/ns/pid", m.pid), namespace)
}

func (m *tree) find() string {
	m.Helper()
	host, err := cgroup.DetectIn(m.root)
	if err != nil {
		m.Fatal(err)
	}
	list, err := Find(m.root, host)
	if err != nil {
		m.Fatal(err)
	}
	var lines []string
	for _, c := range list {
		lines = append(lines, strings.TrimSpace(c.Name()+" "+c.Cgroup+" "+c.Runtime))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// Names come first, then the records of runtimes, then pid namespaces; what is inside a container
// is no other.
func TestFind(t *testing.T) {
	for _, v2 := range []bool{true, false} {
		m := machine(t, v2)
		mount := "/sys/fs/cgroup"
		if !v2 {
			mount = "/sys/fs/cgroup/memory"
		}
		m.runs("/docker/"+id, "pid:[2]")
		m.runs("/docker/"+id+"/docker/"+strings.Repeat("f", 64), "pid:[3]") // Docker in Docker
		m.runs("/system.slice/docker-0.scope/init.scope", "pid:[4]")        // its cgroup is empty but for those below
		m.write(strings.TrimPrefix(mount, "/")+"/system.slice/docker-gone.scope/cgroup.procs", "")
		m.runs("/default/mine", "pid:[5]")
		m.write("run/containerd/berth/default/mine/state.json", `{"runtime": "berth", "id": "mine", "cgroup": {"path": "/default/mine", "made": []}}`)
		m.runs("/jobs/a", "pid:[6]")
		m.write("run/runc/job/state.json", `{"id": "job", "cgroup_paths": {"": "`+mount+`/jobs/a"}, "config": {"x": [1, {}]}}`)
		m.runs("/jobs/b", "pid:[1]") // of the host's pids
		m.write("run/crun/other/status", `{"pid": 7, "cgroup-path": "/jobs/b", "systemd-cgroup": false}`)
		m.write("run/runc/stopped/state.json", `{"id": "stopped", "cgroup_paths": {"": "`+mount+`/jobs/c"}}`)
		m.write("run/runc/broken/state.json", `{`)
		m.write("run/docker/runtime-crun/moby/"+id+"/status", `{}`)
		m.write("etc/berth/berth.toml", "root = \"/srv/state\"\n")
		m.runs("/free", "pid:[1]")
		m.write("srv/state/elsewhere/state.json", `{"cgroup": {"path": "/free"}}`)
		m.runs("/system.slice/ssh.service", "pid:[1]")
		m.runs("/system", "pid:[1]") // where berth-node moves what is in the root
		m.runs("/system", "pid:[9]")
		m.runs("/system.slice/run.service", "pid:[1]") // a container beside its monitor
		m.runs("/system.slice/run.service", "pid:[10]")
		m.runs("/vm/init.scope", "pid:[7]")
		m.runs("/vm/system.slice/web.service", "pid:[7]")
		m.runs("/user.slice/user-0.slice/session-1.scope", "pid:[8]") // a browser's
		want := strings.Join([]string{
			"berth/elsewhere /free berth", "containerd/mine /default/mine berth", "crun/other /jobs/b crun",
			"docker/0 /system.slice/docker-0.scope", "docker/0123456789ab /docker/" + id + " crun", "runc/job /jobs/a runc", "unknown/run.service /system.slice/run.service", "unknown/vm /vm",
		}, "\n")
		if got := m.find(); got != want {
			t.Errorf("version 2 %v:\n%s\nwant\n%s", v2, got, want)
		}
	}
}

// A user's state directory may hold anything: what is no record holds nothing up, and leads
// nowhere.
func TestHostileRecords(t *testing.T) {
	m := machine(t, true)
	m.write("elsewhere/a/state.json", `{"cgroup":{"path":"/jobs/a"}}`)
	m.runs("/jobs/a", "pid:[1]")
	for _, dir := range []string{"run/user/7/berth/fifo", "run/user/7/berth/link", "run/user/7/crun"} {
		if err := os.MkdirAll(m.root+"/"+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"run/user/7/berth/link/state.json": "elsewhere/a/state.json", "run/user/7/runc": "elsewhere"} {
		if err := os.Symlink(m.root+"/"+to, m.root+"/"+link); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(m.root+"/run/user/7/berth/fifo/state.json", 0o644); err != nil {
		t.Fatal(err)
	}
	if got := m.find(); got != "" {
		t.Error(got)
	}
}

// Under systemd on version 1 the units that no controller counts are in systemd's own hierarchy.
func TestSystemdsHierarchy(t *testing.T) {
	m := machine(t, false)
	m.write("run/systemd/system/.keep", "")
	m.write("sys/fs/cgroup/systemd/machine.slice/libpod-1.scope/cgroup.procs", "7\n")
	if got := m.find(); got != "podman/1 /machine.slice/libpod-1.scope" {
		t.Error(got)
	}
}

func TestUnit(t *testing.T) {
	for group, want := range map[string]string{
		"/machine.slice/libpod-1.scope": "libpod-1.scope", "/system.slice/web.service/libpod-payload-1": "web.service", "/docker/1": "", "/machine.slice/x": "",
	} {
		if got := (&Container{Cgroup: group}).Unit(); got != want {
			t.Errorf("%s: %q, want %q", group, got, want)
		}
	}
}

// Each maker has the one setting that moves its containers.
func TestMove(t *testing.T) {
	for _, c := range []struct {
		c           Container
		slice, want string
	}{
		{Container{Maker: Docker, Cgroup: "/docker/1"}, "", `"cgroup-parent": "/machine" in /etc/docker/daemon.json`},
		{Container{Maker: Docker, Cgroup: "/system.slice/docker-1.scope"}, "machine.slice", `"cgroup-parent": "machine.slice"`},
		{Container{Maker: Podman, Cgroup: "/x.slice/libpod-1.scope"}, "machine.slice", "--cgroup-parent machine.slice"},
		{Container{Maker: Podman, Cgroup: "/user.slice/user-7.slice/user@7.service/user.slice/libpod-1.scope"}, "machine.slice", "systemctl set-property user-7.slice MemoryMax="},
		{Container{Maker: Containerd, Cgroup: "/default/1", ID: "1"}, "", "ctr run --cgroup /machine/1"},
		{Container{Maker: Containerd, Cgroup: "/default/1", ID: "1"}, "machine.slice", "--cgroup machine.slice:ctr:1"},
		{Container{Maker: Containerd, Cgroup: "/system.slice/nerdctl-1.scope"}, "machine.slice", "nerdctl run --cgroup-parent machine.slice"},
		{Container{Maker: Containerd, Pod: "1", Cgroup: "/kubepods.slice/cri-containerd-1.scope"}, "machine.slice", "cgroupRoot in the kubelet's configuration"},
		{Container{Maker: Berth, Cgroup: "/berth/1"}, "", "cgroup-parent in /etc/berth/berth.toml"},
		{Container{Maker: Runc, ID: "a", Cgroup: "/a"}, "machine.slice", "linux.cgroupsPath of its config.json to machine.slice:runc:a"},
		{Container{Maker: Crun, ID: "a", Cgroup: "/a"}, "", "linux.cgroupsPath of its config.json to /machine/a"},
		{Container{Maker: LXC, ID: "a", Cgroup: "/lxc/a"}, "", "lxc.cgroup.dir = machine/a"},
		{Container{Maker: Nspawn, ID: "a", Cgroup: "/a"}, "machine.slice", "--slice=machine.slice"},
		{Container{Maker: Unknown, Cgroup: "/system.slice/x.service"}, "machine.slice", "Slice=machine.slice in x.service"},
	} {
		if got := c.c.Move("/machine", c.slice); !strings.Contains(got, c.want) {
			t.Errorf("%+v: %s, want %s", c.c, got, c.want)
		}
	}
}
