package inventory

import (
	"path"
	"strings"

	"github.com/berth-runtime/berth/cgroup/systemd/unit"
)

// Maker is what a container is managed by: the engine that a person asks about it.
type Maker string

// The makers. Kubernetes is for pods whose cgroups have no name of the CRI runtime's, Unknown for
// what is found by its pid namespace only.
const (
	Berth      Maker = "berth"
	Runc       Maker = "runc"
	Crun       Maker = "crun"
	Docker     Maker = "docker"
	Podman     Maker = "podman"
	Containerd Maker = "containerd"
	CRIO       Maker = "cri-o"
	Kubernetes Maker = "kubernetes"
	Nspawn     Maker = "systemd-nspawn"
	LXC        Maker = "lxc"
	Unknown    Maker = "unknown"
)

// scopes are the names of units and cgroups that begin with a word of their maker's. Longer ones
// come first. With no maker it is a helper outside of the container, and not one itself.
var scopes = []struct {
	prefix string
	maker  Maker
}{
	{"libpod-payload-", Podman}, // --cgroups=split, below the unit of the caller
	{"libpod-conmon-", ""},
	{"libpod-", Podman},
	{"crio-conmon-", ""},
	{"crio-", CRIO},
	{"cri-containerd-", Containerd},
	{"nerdctl-", Containerd},
	{"docker-", Docker},
	{"buildkit-", Docker},
	{"berth-", Berth},
	{"runc-", Runc},
	{"crun-", Crun},
}

// named tells whether a cgroup is a container by its name and its place: at is the path of the one
// above it.
func named(at, name string) (c Container, ok bool) {
	c.Cgroup = path.Join(at, name)
	base, isScope := strings.CutSuffix(name, ".scope")
	above := path.Base(at)
	pod, inPod := podOf(at)
	// Without systemd only Podman and CRI-O have a word of theirs in the name.
	if isScope || strings.HasPrefix(name, "libpod-") || inPod {
		for _, s := range scopes {
			if id, found := strings.CutPrefix(base, s.prefix); found && id != "" {
				c.Maker, c.ID, c.Pod = s.maker, id, pod
				return c, s.maker != ""
			}
		}
	}
	switch {
	case inPod && !strings.HasSuffix(name, ".slice") && !strings.HasSuffix(name, ".service"):
		c.Maker, c.ID, c.Pod = Kubernetes, base, pod
	case isID(name) && (above == "docker" || above == "buildkit"):
		c.Maker, c.ID = Docker, name
	case at == "/berth":
		c.Maker, c.ID = Berth, name
	case above == "machine.slice" && isScope && strings.HasPrefix(base, "machine-") && !strings.HasPrefix(base, `machine-qemu`):
		c.Maker, c.ID = Nspawn, unescape(strings.TrimPrefix(base, "machine-"))
	case strings.HasPrefix(name, "systemd-nspawn@") && strings.HasSuffix(name, ".service"):
		c.Maker, c.ID = Nspawn, unescape(strings.TrimSuffix(strings.TrimPrefix(name, "systemd-nspawn@"), ".service"))
	case strings.HasPrefix(name, "lxc.payload."):
		c.Maker, c.ID = LXC, strings.TrimPrefix(name, "lxc.payload.")
	case at == "/lxc":
		c.Maker, c.ID = LXC, name
	default:
		return Container{}, false
	}
	return c, true
}

// podOf gives the pod that a cgroup is, by the names that kubelets give: pod and its UID below
// kubepods, or in a slice of it, where systemd's rules make underscores of dashes.
func podOf(at string) (uid string, ok bool) {
	if !strings.Contains(at, "kubepods") {
		return "", false
	}
	name, isSlice := strings.CutSuffix(path.Base(at), ".slice")
	if isSlice {
		i := strings.LastIndex(name, "-pod")
		if i < 0 {
			return "", false
		}
		return strings.ReplaceAll(name[i+len("-pod"):], "_", "-"), true
	}
	uid, ok = strings.CutPrefix(name, "pod")
	return uid, ok && uid != ""
}

// isID reports whether a name is the id of a container as Docker and containerd's clients make it.
func isID(name string) bool {
	return len(name) >= 12 && strings.Trim(name, "0123456789abcdefghijklmnopqrstuvwxyz") == ""
}

// unescape reads systemd's escapes; what has none that are right stays as it is.
func unescape(name string) string {
	if plain, err := unit.Unescape(name); err == nil {
		return plain
	}
	return name
}
