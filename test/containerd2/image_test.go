package containerd2

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// buildImage does in a directory what build/deploy/Dockerfile says, over a base of busybox
// in the place of Debian's, which would have to come from a registry. The programs
// are stand-ins: nothing is to run them.
func buildImage(t *testing.T) (image string) {
	t.Helper()
	image = t.TempDir()
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Skip("busybox is not installed")
	}
	for _, dir := range []string{"bin", "dev"} {
		if err := os.Mkdir(filepath.Join(image, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// As good as the device that a container has there: it is only written to.
	if err := os.WriteFile(filepath.Join(image, "dev/null"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	copyFile(t, busybox, filepath.Join(image, "bin/busybox"))
	for _, applet := range []string{"sh", "cat", "cp", "mv", "rm", "mkdir", "chmod", "chroot", "cmp", "awk", "sed", "grep", "head", "basename", "dirname", "echo"} {
		if err := os.Symlink("busybox", filepath.Join(image, "bin", applet)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("../../build/deploy/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	copied := 0
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		switch words[0] {
		case "ARG", "FROM":
		case "COPY":
			to := words[len(words)-1]
			for _, from := range words[1 : len(words)-1] {
				copied++
				target := filepath.Join(image, to)
				if strings.HasSuffix(to, "/") {
					target = filepath.Join(target, filepath.Base(from))
				}
				if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
					t.Fatal(err)
				}
				if name, built := strings.CutPrefix(from, "bin/"); built {
					if err := os.WriteFile(target, []byte("program "+name), 0o755); err != nil {
						t.Fatal(err)
					}
					continue
				}
				copyFile(t, "../../"+from, target) // a link is followed, as COPY does it
			}
		default:
			t.Fatalf("build/deploy/Dockerfile: this test does not know what %s does", words[0])
		}
	}
	if copied == 0 {
		t.Fatal("build/deploy/Dockerfile copies nothing")
	}
	return image
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o755); err != nil {
		t.Fatal(err)
	}
}

// The image has what the DaemonSet's command needs: it is run in it, with a node
// where the manifest mounts that.
func TestInstallerImage(t *testing.T) {
	n := newFakeNode(t, true)
	image := buildImage(t)
	manifest, err := os.ReadFile("../../build/deploy/daemonset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var set struct {
		Spec struct {
			Template struct {
				Spec struct {
					InitContainers []struct {
						Command      []string
						VolumeMounts []struct {
							MountPath string `yaml:"mountPath"`
						} `yaml:"volumeMounts"`
					} `yaml:"initContainers"`
				}
			}
		}
	}
	if err := yaml.Unmarshal(manifest, &set); err != nil {
		t.Fatal(err)
	}
	installer := set.Spec.Template.Spec.InitContainers[0]
	host := filepath.Join(image, installer.VolumeMounts[0].MountPath)
	if err := os.Rename(n.root, host); err != nil {
		t.Fatal(err)
	}
	n.root = host
	run := func(command ...string) {
		t.Helper()
		// There is no systemd to be asked for the restart.
		cmd := exec.Command("chroot", append([]string{image}, append(command, "--restart", "echo restarted >> /restarts")...)...)
		cmd.Env = []string{"PATH=/bin:/usr/bin"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", command, err, out)
		}
	}
	restarts := func() int {
		text, _ := os.ReadFile(filepath.Join(image, "restarts"))
		return strings.Count(string(text), "restarted\n")
	}
	run(installer.Command...)
	if !strings.Contains(n.read("etc/containerd/config.toml"), "runtimes.berth]") || n.read("usr/local/bin/containerd-shim-berth-v2") != "program containerd-shim-berth-v2" || restarts() != 1 {
		t.Errorf("%d restarts, and config.toml:\n%s", restarts(), n.read("etc/containerd/config.toml"))
	}
	run(installer.Command...)
	if restarts() != 1 {
		t.Error("containerd has been restarted though nothing has changed")
	}
	run(append([]string{"/berth/uninstall"}, installer.Command[1:]...)...)
	if strings.Contains(n.read("etc/containerd/config.toml"), "berth") || restarts() != 2 {
		t.Errorf("after uninstall, with %d restarts:\n%s", restarts(), n.read("etc/containerd/config.toml"))
	}
}
