package view

import (
	"errors"
	"io/fs"
	"strconv"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/engine/container"
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/internal/namespace"
	"github.com/berth-runtime/berth/internal/proc/mountinfo"
	"golang.org/x/sys/unix"
)

// An Inspection is all that is known of a container: what was wanted of it, and
// what is there now.
type Inspection struct {
	State container.State
	// Plan is what its making did, made again from the config that it was made from.
	Plan *plan.Plan
	// Limits are those that the config has set, and that anything else has, as they are now.
	Limits []LimitNow
	// Namespaces and Mounts are those of the first process, while it lives.
	Namespaces []NamespaceNow
	Mounts     []mountinfo.Entry
	// OOMKills is the number of its processes that were OOM-killed.
	OOMKills uint64
	// Denied are the system calls that its seccomp profile has refused, of those processes that
	// were to be explained.
	Denied []container.Denial
	// UnitOOMKilled says that systemd has recorded kills, and nothing how many or by which limit.
	UnitOOMKilled bool
	// OwnLimit says that the container's own limit of memory was hit.
	OwnLimit bool
}

// NamespaceNow is a namespace of a process.
type NamespaceNow struct {
	Type, ID string
	// Shared is set where it is ours too.
	Shared bool
}

// Inspect looks at the container.
func Inspect(c *container.Container) (*Inspection, error) {
	p, err := c.PlanAgain()
	if err != nil {
		return nil, err
	}
	i := &Inspection{State: c.State(), Plan: p, Denied: c.Denials()}
	if err := inspectGroup(c, i); err != nil {
		return nil, err
	}
	if i.State.Pid == 0 {
		return i, nil
	}
	i.Namespaces = namespacesNow(c.Pid)
	if i.Mounts, err = mountinfo.Of(strconv.Itoa(c.Pid)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return i, nil
}

// inspectGroup reads the limits back, and what they did.
func inspectGroup(c *container.Container, i *Inspection) error {
	g, err := c.OpenGroup()
	if errors.Is(err, fs.ErrNotExist) {
		i.recorded(c)
		return nil
	}
	if err == nil && g == nil {
		return nil
	}
	if err != nil {
		return err
	}
	defer g.Close()
	i.Limits = limitsNow(g, i.Plan.Cgroup.Writes)
	stats, err := g.Stats(cgroup.Memory)
	if err != nil || stats.Memory == nil || stats.Memory.Events == nil {
		// Of version 1 systemd removes the directories in its own hierarchies, and others are there
		// still; or there is no memory controller, and nothing to tell.
		if i.State.Status == "stopped" {
			i.recorded(c)
		}
		return nil
	}
	i.OOMKills = value(stats.Memory.Events.OOMKill)
	i.OwnLimit = stats.Memory.LimitHit()
	return nil
}

// recorded finds out what others have on record of OOM kills in a cgroup that is gone.
func (i *Inspection) recorded(c *container.Container) {
	// systemd knows only of a unit that failed by it, which takes memory.oom.group.
	if i.OOMKills, i.OwnLimit = oomLogged(c); i.OOMKills == 0 {
		i.UnitOOMKilled = c.UnitOOMKilled()
	}
}

func namespacesNow(pid int) []NamespaceNow {
	var list []NamespaceNow
	for _, name := range [...]string{"user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time"} {
		theirs, err := namespace.Of(pid, name)
		if err != nil {
			continue // it has ended meanwhile, or the kernel has none of the kind
		}
		ours, _ := namespace.Of(0, name)
		list = append(list, NamespaceNow{Type: name, ID: name + ":[" + strconv.FormatUint(theirs.Ino, 10) + "]", Shared: ours == theirs})
	}
	return list
}

// End says how a container came to its end, in words; "" where it has not, and
// "unknown" if it was not recorded.
func (i *Inspection) End() string {
	if i.State.Status != "stopped" {
		return ""
	}
	how := "unknown (its status went to its parent)"
	switch e := i.State.Ended; {
	case e == nil:
	case e.Signaled():
		how = "killed by " + unix.SignalName(e.Signal())
	default:
		how = "exit status " + strconv.Itoa(e.ExitStatus())
	}
	switch {
	case i.UnitOOMKilled:
		how += "; OOM-killed, as systemd has recorded"
	case i.OOMKills == 0:
	case i.OwnLimit:
		how += "; " + strconv.FormatUint(i.OOMKills, 10) + " of its processes OOM-killed, by its own limit"
	default:
		how += "; " + strconv.FormatUint(i.OOMKills, 10) + " of its processes OOM-killed, by a limit above it or the machine's memory"
	}
	return how
}
