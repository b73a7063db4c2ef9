package containerd2

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/berth-runtime/berth/test/containerd"
)

// fakeNode is a root directory with as much in it as the installer looks at.
type fakeNode struct {
	t    *testing.T
	root string
	from string // the programs to be installed
}

// newFakeNode makes a node whose containerd is the real one of a release, or
// where that could not run in a directory, being linked with libraries, a script
// that says its version and checks nothing.
func newFakeNode(t *testing.T, modern bool) *fakeNode {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("the installer changes its root, which takes root")
	}
	n := &fakeNode{t: t, root: t.TempDir(), from: t.TempDir()}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Skip("busybox is not installed")
	}
	n.copy(busybox, "bin/sh")
	if modern {
		n.copy(containerd.Modern(t).Daemon, "usr/bin/containerd")
	} else {
		n.write("usr/bin/containerd", "#!/bin/sh\necho containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1\n")
	}
	for _, name := range []string{"berth", "containerd-shim-berth-v2"} {
		if err := os.WriteFile(filepath.Join(n.from, name), []byte("program "+name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func (n *fakeNode) write(name, text string) {
	n.t.Helper()
	path := filepath.Join(n.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		n.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		n.t.Fatal(err)
	}
}

func (n *fakeNode) copy(from, name string) {
	n.t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		n.t.Fatal(err)
	}
	n.write(name, string(b))
}

func (n *fakeNode) read(name string) string {
	n.t.Helper()
	b, err := os.ReadFile(filepath.Join(n.root, name))
	if err != nil {
		n.t.Fatal(err)
	}
	return string(b)
}

// run runs the installer by one of its names, and says how often it has had
// containerd restarted.
func (n *fakeNode) run(name string, args ...string) (out string, restarts int, err error) {
	n.t.Helper()
	restarted := filepath.Join(n.t.TempDir(), "restarted")
	args = append([]string{"--root", n.root, "--restart", "echo >> " + restarted}, args...)
	if name == "install" {
		args = append(args, "--from", n.from)
	}
	text, err := exec.Command("../../build/deploy/"+name, args...).CombinedOutput()
	count, _ := os.ReadFile(restarted)
	return string(text), len(count), err
}

// want runs the installer, which must succeed.
func (n *fakeNode) want(restarts int, name string, args ...string) {
	n.t.Helper()
	out, got, err := n.run(name, args...)
	if err != nil {
		n.t.Fatalf("%s: %v\n%s", name, err, out)
	}
	if got != restarts {
		n.t.Errorf("%s restarted containerd %d times, want %d\n%s", name, got, restarts, out)
	}
}

// tables is a block of docs/kubernetes.md without its version.
func tables(t *testing.T, version string) string {
	_, text, _ := strings.Cut(readPage(t, "kubernetes.md").block(t, "toml", version), "\n\n")
	return text
}

func TestInstallOnANewNode(t *testing.T) {
	for _, tc := range []struct {
		name    string
		modern  bool
		version string
	}{{"1.6", false, "version = 2"}, {"2", true, "version = 3"}} {
		t.Run(tc.name, func(t *testing.T) {
			n := newFakeNode(t, tc.modern)
			n.want(1, "install", "--systemd-cgroup", "true")
			// What it writes is what the page says, and so what the other tests run with.
			config := n.read("etc/containerd/config.toml")
			if !strings.HasPrefix(config, tc.version+"\n") || !strings.Contains(config, tables(t, tc.version)) {
				t.Errorf("config.toml:\n%s\nwant:\n%s\n%s", config, tc.version, tables(t, tc.version))
			}
			if !tc.modern {
				if got, want := n.read("etc/containerd/berth-shim.toml"), readPage(t, "kubernetes.md").block(t, "toml", "SystemdCgroup"); got != want {
					t.Errorf("berth-shim.toml: %q, want %q", got, want)
				}
			}
			for _, name := range []string{"berth", "containerd-shim-berth-v2"} {
				info, err := os.Stat(filepath.Join(n.root, "usr/local/bin", name))
				if err != nil || info.Mode().Perm() != 0o755 || n.read("usr/local/bin/"+name) != "program "+name {
					t.Errorf("%s: %v, %v", name, info, err)
				}
			}
			n.want(0, "install", "--systemd-cgroup", "true")
			n.want(1, "uninstall")
			if got := n.read("etc/containerd/config.toml"); got != tc.version+"\n" {
				t.Errorf("after uninstall: %q", got)
			}
			n.want(0, "uninstall")
		})
	}
}

func TestInstallKeepsAConfiguration(t *testing.T) {
	const mine = "# mine\nversion = 3\n[plugins.\"io.containerd.cri.v1.runtime\"]\n  max_container_log_line_size = 1234\n"
	n := newFakeNode(t, true)
	n.write("etc/containerd/config.toml", mine)
	if err := os.MkdirAll(filepath.Join(n.root, "run/systemd/system"), 0o755); err != nil {
		t.Fatal(err)
	}
	n.want(1, "install")
	config := n.read("etc/containerd/config.toml")
	if !strings.HasPrefix(config, mine) || !strings.Contains(config, "SystemdCgroup = true") {
		t.Errorf("config.toml:\n%s", config)
	}
	// Another setting takes the place of the one before.
	n.want(1, "install", "--systemd-cgroup", "false")
	if config = n.read("etc/containerd/config.toml"); strings.Count(config, "SystemdCgroup") != 1 || !strings.Contains(config, "SystemdCgroup = false") {
		t.Errorf("config.toml:\n%s", config)
	}
	if got := n.read("etc/containerd/config.toml.before-berth"); got != mine {
		t.Errorf("the file as it was: %q", got)
	}
	n.want(1, "uninstall")
	if got := n.read("etc/containerd/config.toml"); got != mine {
		t.Errorf("after uninstall: %q", got)
	}
}

// The PATH of the installer's image says nothing about the node's.
func TestInstallFindsContainerdOutsideOfItsPath(t *testing.T) {
	n := newFakeNode(t, false)
	if err := os.Mkdir(filepath.Join(n.root, "usr/local"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(n.root, "usr/bin"), filepath.Join(n.root, "usr/local/bin")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
	n.want(1, "install")
}

func TestInstallWithRuncConfigured(t *testing.T) {
	n := newFakeNode(t, false)
	n.write("etc/containerd/config.toml", "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.runc]\n  runtime_type = \"io.containerd.runc.v2\"\n")
	n.want(1, "install")
	if got := strings.Count(n.read("etc/containerd/config.toml"), "runtimes.runc]"); got != 1 {
		t.Errorf("%d tables for runc", got)
	}
}

// A configuration that containerd would not start with must not be put in place.
func TestInstallIsRefused(t *testing.T) {
	for name, tc := range map[string]struct{ config, words string }{
		"an old version":   {"root = \"/x\"\n", "version 1"},
		"a table of ours":  {"version = 3\n[plugins.\"io.containerd.cri.v1.runtime\".containerd.runtimes.berth]\n  runtime_type = \"x\"\n", "does not take"},
		"no configuration": {"version = 3\n]]]\n", "does not take"},
	} {
		n := newFakeNode(t, true)
		n.write("etc/containerd/config.toml", tc.config)
		out, restarts, err := n.run("install")
		if err == nil || restarts != 0 || !strings.Contains(out, tc.words) {
			t.Errorf("%s: %v, %d restarts, %s", name, err, restarts, out)
		}
		if got := n.read("etc/containerd/config.toml"); got != tc.config {
			t.Errorf("%s: config.toml has been changed: %q", name, got)
		}
		left, _ := filepath.Glob(filepath.Join(n.root, "etc/containerd/config.toml?*"))
		if len(left) != 0 {
			t.Errorf("%s: left: %q", name, left)
		}
	}
}

// The manifests name what there is: the script, the image's directory, the handler.
func TestManifests(t *testing.T) {
	parse := func(path string, to any) {
		t.Helper()
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(b, to); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	var class, documented struct {
		Handler    string
		Scheduling struct {
			NodeSelector map[string]string `yaml:"nodeSelector"`
		}
	}
	parse("../../build/deploy/runtimeclass.yaml", &class)
	if err := yaml.Unmarshal([]byte(readPage(t, "kubernetes.md").block(t, "yaml", "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\n")), &documented); err != nil {
		t.Fatal(err)
	}
	if class.Handler != "berth" || documented.Handler != class.Handler {
		t.Errorf("handlers %q and %q", class.Handler, documented.Handler)
	}
	var set struct {
		Spec struct {
			Template struct {
				Spec struct {
					NodeSelector   map[string]string `yaml:"nodeSelector"`
					HostPID        bool              `yaml:"hostPID"`
					InitContainers []struct {
						Command      []string
						VolumeMounts []struct{ Name, MountPath string } `yaml:"volumeMounts"`
					} `yaml:"initContainers"`
				}
			}
		}
	}
	parse("../../build/deploy/daemonset.yaml", &set)
	spec := set.Spec.Template.Spec
	for key, value := range class.Scheduling.NodeSelector {
		if spec.NodeSelector[key] != value {
			t.Errorf("the class has pods on nodes with %s=%s, and the installer is on those with %v", key, value, spec.NodeSelector)
		}
	}
	if len(spec.InitContainers) != 1 || strings.Join(spec.InitContainers[0].Command, " ") != "/berth/install --root /host" || !spec.HostPID {
		t.Errorf("installer: %+v", spec)
	}
	image, err := os.ReadFile("../../build/deploy/Dockerfile")
	if err != nil || !strings.Contains(string(image), "build/deploy/install build/deploy/uninstall /berth/") {
		t.Errorf("the image does not have the script where the manifest looks: %v\n%s", err, image)
	}
}
