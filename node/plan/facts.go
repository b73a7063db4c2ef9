package plan

import (
	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/internal/settings"
	"github.com/berth-runtime/berth/node/config"
	"github.com/berth-runtime/berth/node/config/resource"
	"github.com/berth-runtime/berth/node/inventory"
)

// Facts are what a plan depends on.
type Facts struct {
	Capacity resource.List
	PageSize int64
	// Init is Systemd where that is the init system.
	Init config.Driver
	// SystemdVersion is its version.
	SystemdVersion int
	// Mode is how cgroups are mounted: unified, hybrid or legacy.
	Mode   string
	Layout ledger.Layout
	// Groups are the cgroups of the plan, by path; those that are not there are missing.
	Groups map[string]Group
	// Parameters are those of the kernel, by name, as vm.panic_on_oom.
	Parameters map[string]string
	// Settings are those of the host for berth and its shim.
	Settings settings.Settings
	// Daemons are the processes that an OOM score is for.
	Daemons []Daemon
	// Kubelet is nil where none runs.
	Kubelet *Daemon
	// KubeletConfigured is set where a kubelet has a configuration to run with.
	KubeletConfigured bool
	// Loose are processes that are in no cgroup but the root, without the kernel's.
	Loose int
	// Containers are all that run, whatever made them.
	Containers []inventory.Container
}

// HasKubelet reports whether a kubelet runs, or is to run.
func (f *Facts) HasKubelet() bool { return f.Kubelet != nil || f.KubeletConfigured }

// Group is what is known of a cgroup.
type Group struct {
	// Missing are controllers that the host has, and this cgroup has not.
	Missing []string
	// Files are the values of the files that a plan may set.
	Files map[string]string
	// Properties are those of the unit, where it is one.
	Properties map[string]any
	// Active is set where systemd has started the unit.
	Active bool
	// Memory is what is used now.
	Memory int64
}

// Daemon is a process.
type Daemon struct {
	Key        string // of the configuration's oom-scores
	PID        int
	Start      uint64 // in clock ticks since boot: with the pid it names a process
	Name       string
	Executable string
	Cgroup     string
	Unit       string // of systemd
	Score      int
}
