package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/internal/settings"
	"github.com/berth-runtime/berth/node/config"
	"github.com/berth-runtime/berth/node/config/resource"
)

// Parameters are the kernel's parameters that a node for containers has, with
// their values: overcommit is allowed, since limits are by cgroup; a lack of
// memory kills a process and not the machine; and a kernel that has gone wrong
// reboots after 10 seconds instead of limping on.
func Parameters() [][2]string {
	return [][2]string{
		{"vm.overcommit_memory", "1"},
		{"vm.panic_on_oom", "0"},
		{"kernel.panic", "10"},
		{"kernel.panic_on_oops", "1"},
	}
}

func (p *Plan) parameters() {
	mode := p.Config.Parameters
	if mode == config.Off {
		return
	}
	for _, parameter := range Parameters() {
		name, value := parameter[0], parameter[1]
		now, ok := p.Facts.Parameters[name]
		if !ok {
			p.warn("%s: this kernel shows no %s", p.Config.Cause("kernel-parameters"), name)
			continue
		}
		p.add(Step{Kind: SetParameter, Target: name, Value: value, Now: now, Cause: p.Config.Cause("kernel-parameters"), CheckOnly: mode == config.Check})
		if mode == config.Check && now != value {
			p.warn("%s is %s, but %s is right for a container node: sysctl -w %s=%s, or kernel-parameters: set", name, now, value, name, value)
		}
	}
}

// parent lets berth and its shim put containers below the workloads that name no place of their
// own.
func (p *Plan) parent() {
	mode := p.Config.BerthParent
	want := p.Config.Workloads()
	if mode == config.Off || want == "/" {
		return
	}
	cause := p.Config.Cause("cgroup-root")
	now := p.Facts.Settings.Parent
	p.add(Step{Kind: SetParent, Target: settings.File, Name: "cgroup-parent", Value: want, Now: now, Cause: cause, CheckOnly: mode == config.Check})
	if mode == config.Check && now != want {
		p.warn("%s has cgroup-parent = %q where %s wants %q: containers that name no cgroup are not below the workloads; set it, or berth-parent: set", settings.File, now, cause, want)
	}
	if driver := p.Facts.Settings.Driver; driver == settings.Cgroupfs && p.Driver == config.Systemd {
		p.warn("%s has cgroup-driver = %q, but systemd is the init system: containers are made behind its back; set it to auto", settings.File, driver)
	}
}

func (p *Plan) scores() {
	mode := p.Config.ScoreMode
	if mode == config.Off {
		return
	}
	for _, d := range p.Facts.Daemons {
		score, ok := p.Config.Scores[d.Key]
		if !ok {
			continue
		}
		p.add(Step{Kind: SetScore, Target: d.Key, Name: "pid " + strconv.Itoa(d.PID), Value: strconv.Itoa(score.Value), Now: strconv.Itoa(d.Score),
			Cause: score.Cause, CheckOnly: mode == config.Check, Process: &d})
		if mode == config.Check && d.Score != score.Value {
			p.warn("%s (pid %d) has OOM score %d where %s wants %d: set oom-score-mode: set, or OOMScoreAdjust= in its unit", d.Name, d.PID, d.Score, score.Cause, score.Value)
		}
	}
	if p.Facts.Init != config.Systemd {
		for _, key := range slices.Sorted(maps.Keys(p.Config.Scores)) {
			if strings.HasSuffix(key, ".service") {
				p.warn("%s: there are no units here, since systemd is not the init system: name the executable", p.Config.Scores[key].Cause)
			}
		}
	}
}

// processes plans what the cgroupfs driver moves, as the seed describes it.
// Under systemd nothing is ever moved: each process is in its unit.
func (p *Plan) processes() {
	if p.Driver == config.Systemd {
		return
	}
	if at, ok := p.Place(Kubelet); ok && p.Facts.Kubelet != nil {
		k := p.Facts.Kubelet
		now := ""
		if k.Cgroup == at.Path {
			now = at.Path
		}
		p.add(Step{Kind: Move, Target: at.Path, Name: fmt.Sprintf("%s (pid %d)", k.Name, k.PID), Value: at.Path, Now: now, Cause: at.Cause, Group: at.Path, Process: k})
	}
	if at, ok := p.Place(System); ok {
		now := at.Path
		if p.Facts.Loose > 0 {
			now = "/"
		}
		p.add(Step{Kind: Move, Target: at.Path, Name: "processes of the root", Value: at.Path, Now: now, Cause: at.Cause, Group: at.Path})
	}
}

// look warns of what is not as the hierarchy means it.
func (p *Plan) look() {
	if k := p.Facts.Kubelet; k != nil {
		p.kubelet(k)
	}
	// Every walk over all cgroups pays for depth, and pods have three levels of their own below.
	if depth := strings.Count(p.Config.CgroupRoot, "/"); depth > 2 {
		p.warn("%s: %s is %d levels below the root, and the workloads are deeper still: at most 2 are recommended", p.Config.Cause("cgroup-root"), p.Config.CgroupRoot, depth)
	}
	for _, d := range p.Facts.Daemons {
		if p.Driver == config.Systemd && d.Name != "kubelet" && p.Part(d.Cgroup) != System && p.Part(d.Cgroup) != Kube {
			p.warn("%s (pid %d) is in %s, so no reservation covers its usage: set Slice=system.slice in its unit, or Slice=kubernetes.slice", d.Name, d.PID, d.Cgroup)
		}
	}
	p.outside()
	switch kill := p.Config.Eviction == config.Kill; {
	case len(p.Config.EvictionHard) == 0:
		if kill {
			p.warn("%s: there is no threshold to act on: set eviction-hard", p.Config.Cause("eviction"))
		}
	case kill && p.Facts.HasKubelet():
		p.warn("%s: there is a kubelet here, which evicts by its own evictionHard; berth-node does not", p.Config.Cause("eviction"))
	case kill:
		if _, ok := p.Config.EvictionHard[resource.EphemeralStorage]; ok {
			p.warn("%s: nothing evicts for nodefs.available, since a container that is killed keeps its files; it is only subtracted", p.Config.Cause("eviction-hard"))
		}
	case !p.Facts.HasKubelet():
		p.warn("%s: nothing evicts here, since there is no kubelet; it is only subtracted from what is allocatable: set eviction: kill to let berth-node watch act on it", p.Config.Cause("eviction-hard"))
	}
	for _, s := range p.Steps {
		limit, err := strconv.ParseInt(s.Value, 10, 64)
		if used := p.Facts.Groups[s.Group].Memory; s.Memory && !s.Done() && err == nil && used > limit {
			p.warn("%s: %s uses %s of memory now, and the limit is to be %s: the difference is reclaimed first, and the limit is given up if that fails",
				s.Cause, s.Target, resource.Memory.Human(used), resource.Memory.Human(limit))
		}
	}
}

func (p *Plan) kubelet(k *Daemon) {
	who := fmt.Sprintf("the kubelet (pid %d)", k.PID)
	if strings.HasSuffix(k.Unit, ".scope") && strings.HasPrefix(k.Cgroup, "/user.slice/") {
		p.warn("%s was started from a terminal: it is in %s (%s), and its use is counted there; start it as a unit with Slice=kubernetes.slice", who, k.Unit, k.Cgroup)
	} else if at, ok := p.Place(System); ok && p.Part(k.Cgroup) == System && p.Driver == config.Systemd {
		// Without systemd it is there because it was moved there with all of the root's processes.
		unit := k.Unit
		if unit == "" {
			unit = k.Cgroup
		}
		p.warn("%s is in %s, inside the system container %s, so its usage counts as system-reserved: set Slice=kubernetes.slice in its unit", who, unit, at.Path)
	}
}
