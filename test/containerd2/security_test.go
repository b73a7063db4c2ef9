package containerd2

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/berth-runtime/berth/test/containerd"
)

func TestSeccomp(t *testing.T) {
	onNodes(t, func(t *testing.T, n *node) {
		profile := filepath.Join(n.Dir, "profile.json")
		if err := os.WriteFile(profile, []byte(`{"defaultAction": "SCMP_ACT_ALLOW",
			"syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 93}]}`), 0o644); err != nil {
			t.Fatal(err)
		}
		p := n.runPod()
		for name, tc := range map[string]struct {
			profile *cri.SecurityProfile
			script  string
			want    string
		}{
			"runtime default": {&cri.SecurityProfile{ProfileType: cri.SecurityProfile_RuntimeDefault}, "grep ^Seccomp: /proc/self/status; unshare -U true 2>&1 || echo refused", "Seccomp:\t2\n"},
			"unconfined":      {&cri.SecurityProfile{ProfileType: cri.SecurityProfile_Unconfined}, "grep ^Seccomp: /proc/self/status", "Seccomp:\t0\n"},
			"localhost":       {&cri.SecurityProfile{ProfileType: cri.SecurityProfile_Localhost, LocalhostRef: profile}, "mkdir /x 2>&1 || :", "Protocol not supported"},
		} {
			c := p.run("sleep 1000", func(c *cri.ContainerConfig) { c.Linux.SecurityContext.Seccomp = tc.profile })
			if got := c.exec(tc.script); !strings.Contains(got, tc.want) || name == "runtime default" && !strings.Contains(got, "refused") {
				t.Errorf("%s: %q", name, got)
			}
		}
		p.remove()
	})
}

// modernNode is a node of containerd 2, for what CRI of 1.6 does not have.
func modernNode(t *testing.T) *node {
	return recommendedNode(t, containerd.Modern(t))
}

// features are what containerd tells the kubelet of the handler, as the shim has
// told it.
func (n *node) features() *cri.RuntimeHandlerFeatures {
	n.t.Helper()
	r, err := n.RuntimeServiceClient.Status(n.ctx(), &cri.StatusRequest{})
	if err != nil {
		n.t.Fatal(err)
	}
	for _, h := range r.RuntimeHandlers {
		if h.Name == n.handler {
			return h.Features
		}
	}
	n.t.Fatalf("containerd does not name the handler %s: %v", n.handler, r.RuntimeHandlers)
	return nil
}

func TestUserNamespaces(t *testing.T) { userNamespaces(t, modernNode(t)) }

func userNamespaces(t *testing.T, n *node) {
	if !n.features().GetUserNamespaces() {
		t.Skip("the handler has no user namespaces on this kernel")
	}
	ids := []*cri.IDMapping{{HostId: 1 << 20, ContainerId: 0, Length: 65536}}
	p := n.runPod(ownNetwork(t), func(c *cri.PodSandboxConfig) {
		c.Linux.SecurityContext.NamespaceOptions.UsernsOptions = &cri.UserNamespace{Mode: cri.NamespaceMode_POD, Uids: ids, Gids: ids}
	})
	volume := filepath.Join(n.Dir, "volume")
	if err := os.MkdirAll(volume, 0o777); err != nil {
		t.Fatal(err)
	}
	// The daemon's directory is only root's, and the id maps have none of those.
	for dir := n.Dir; dir != "/tmp" && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	c := p.run("sleep 1000", func(c *cri.ContainerConfig) {
		c.Mounts = []*cri.Mount{{HostPath: volume, ContainerPath: "/volume", UidMappings: ids, GidMappings: ids}}
	})
	if got := strings.Fields(c.exec("cat /proc/self/uid_map")); strings.Join(got, " ") != "0 1048576 65536" {
		t.Errorf("uid_map: %q", got)
	}
	if got := c.exec("id -u; stat -c %u /bin/busybox; : > /volume/made; stat -c %u /volume/made"); got != "0\n0\n0\n" {
		t.Errorf("ids in the container: %q", got)
	}
	var made unix.Stat_t
	if err := unix.Stat(filepath.Join(volume, "made"), &made); err != nil || made.Uid != 0 {
		t.Errorf("owner of a file in a mapped volume: %d, %v", made.Uid, err)
	}
	d := p.run("sleep 1000")
	if c.exec("readlink /proc/self/ns/user") != d.exec("readlink /proc/self/ns/user") {
		t.Error("two containers of a pod are not in one user namespace")
	}
	p.remove()
}

func TestRecursiveReadOnlyMounts(t *testing.T) {
	n := modernNode(t)
	if !n.features().GetRecursiveReadOnlyMounts() {
		t.Skip("the handler has no recursive read-only mounts on this kernel")
	}
	volume := filepath.Join(n.Dir, "volume")
	if err := os.MkdirAll(volume+"/below", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", volume+"/below", "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(volume+"/below", unix.MNT_DETACH)
	p := n.runPod()
	for _, tc := range []struct {
		recursive bool
		want      string
	}{{false, "written\n"}, {true, "refused\n"}} {
		c := p.run("sleep 1000", func(c *cri.ContainerConfig) {
			c.Mounts = []*cri.Mount{{HostPath: volume, ContainerPath: "/volume", Readonly: true, RecursiveReadOnly: tc.recursive}}
		})
		if got := c.exec("touch /volume/x 2>/dev/null && echo top; touch /volume/below/x 2>/dev/null && echo written || echo refused"); got != tc.want {
			t.Errorf("recursive %t: %q", tc.recursive, got)
		}
	}
	p.remove()
}
