package plan

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/engine/spec"
	"github.com/berth-runtime/berth/internal/caps"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// NewProcess translates a process object; at is its pointer in the document.
// It is shared by the container's first process and by exec.
func NewProcess(in *specs.Process, at string) (Process, []spec.Complaint) {
	p := Process{
		Args:            in.Args,
		Env:             lastOfEach(in.Env),
		Cwd:             path.Clean(in.Cwd),
		Terminal:        in.Terminal,
		Console:         in.ConsoleSize,
		UID:             in.User.UID,
		GID:             in.User.GID,
		Groups:          in.User.AdditionalGids,
		NoNewPrivileges: in.NoNewPrivileges,
		OOMScoreAdj:     in.OOMScoreAdj,
		AppArmor:        in.ApparmorProfile,
		SELinux:         in.SelinuxLabel,
		At:              at,
	}
	if in.User.Umask != nil {
		p.Umask, p.HasUmask = *in.User.Umask&0o777, true
	}
	if c := in.Capabilities; c != nil {
		// Unknown names are warned about by spec.Check and left out here.
		p.Bounding, _ = caps.SetOf(c.Bounding)
		p.Effective, _ = caps.SetOf(c.Effective)
		p.Inheritable, _ = caps.SetOf(c.Inheritable)
		p.Permitted, _ = caps.SetOf(c.Permitted)
		p.Ambient, _ = caps.SetOf(c.Ambient)
		// prctl(2) refuses what goes beyond these with EPERM; it is taken off, as
		// spec.Check's warnings say.
		p.Ambient &= p.Permitted & p.Inheritable
	}
	var problems []spec.Complaint
	for i, l := range in.Rlimits {
		where := at + "/rlimits/" + strconv.Itoa(i)
		resource, ok := rlimit(l.Type)
		if !ok {
			problems = append(problems, spec.Complaint{Pointer: where + "/type", Message: "unknown resource limit " + strconv.Quote(l.Type), Hint: "the names of getrlimit(2), such as RLIMIT_NOFILE"})
			continue
		}
		p.Rlimits = append(p.Rlimits, Rlimit{Name: l.Type, Resource: resource, Soft: l.Soft, Hard: l.Hard, At: where})
	}
	if in.Scheduler != nil {
		s, problem := scheduler(in.Scheduler)
		if problem != "" {
			problems = append(problems, spec.Complaint{Pointer: at + "/scheduler", Message: problem})
		}
		p.Scheduler = s
	}
	if in.IOPriority != nil {
		value := ioPriority(in.IOPriority)
		p.IOPriority = &value
	}
	return p, problems
}

// keepGroupsAnnotation is what Podman writes for --group-add keep-groups, and crun reads:
// ordinary users reach by their groups what no mapping of ids gives them.
const keepGroupsAnnotation = "run.oci.keep_original_groups"

// lastOfEach leaves of several values of a variable the last one. Otherwise it would
// depend on the program which of them holds: getenv(3) of the C libraries finds the
// first, a shell keeps the last.
func lastOfEach(env []string) []string {
	at := make(map[string]int, len(env))
	kept := make([]string, 0, len(env))
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		if i, twice := at[name]; twice {
			kept[i] = entry
			continue
		}
		at[name] = len(kept)
		kept = append(kept, entry)
	}
	return kept
}

// rlimit returns the number of a limit.
func rlimit(name string) (int, bool) {
	n := slices.Index(spec.Rlimits[:], name)
	return n, n >= 0
}

func scheduler(in *specs.Scheduler) (*Scheduler, string) {
	s := &Scheduler{Nice: in.Nice, Priority: uint32(in.Priority), Runtime: in.Runtime, Deadline: in.Deadline, Period: in.Period}
	switch in.Policy {
	case specs.SchedOther:
		s.Policy = unix.SCHED_NORMAL
	case specs.SchedFIFO:
		s.Policy = unix.SCHED_FIFO
	case specs.SchedRR:
		s.Policy = unix.SCHED_RR
	case specs.SchedBatch:
		s.Policy = unix.SCHED_BATCH
	case specs.SchedISO:
		s.Policy = 4 // reserved by the kernel, never implemented; it will answer EINVAL
	case specs.SchedIdle:
		s.Policy = unix.SCHED_IDLE
	case specs.SchedDeadline:
		s.Policy = unix.SCHED_DEADLINE
	default:
		return nil, "unknown policy " + strconv.Quote(string(in.Policy))
	}
	for _, flag := range in.Flags {
		switch flag {
		case specs.SchedFlagResetOnFork:
			s.Flags |= unix.SCHED_FLAG_RESET_ON_FORK
		case specs.SchedFlagReclaim:
			s.Flags |= unix.SCHED_FLAG_RECLAIM
		case specs.SchedFlagDLOverrun:
			s.Flags |= unix.SCHED_FLAG_DL_OVERRUN
		case specs.SchedFlagKeepPolicy:
			s.Flags |= unix.SCHED_FLAG_KEEP_POLICY
		case specs.SchedFlagKeepParams:
			s.Flags |= unix.SCHED_FLAG_KEEP_PARAMS
		// The specification has these flags, and no entries for their values. With 0
		// the greatest utilisation would hold the process down to the slowest
		// frequency; -1 is the system's default (sched_setattr(2), Linux 5.11).
		case specs.SchedFlagUtilClampMin:
			s.Flags |= unix.SCHED_FLAG_UTIL_CLAMP_MIN
			s.Clamps |= 1<<32 - 1
		case specs.SchedFlagUtilClampMax:
			s.Flags |= unix.SCHED_FLAG_UTIL_CLAMP_MAX
			s.Clamps |= (1<<32 - 1) << 32
		default:
			return nil, "unknown flag " + strconv.Quote(string(flag))
		}
	}
	return s, ""
}

// ioPriority encodes class and level as ioprio_set(2) takes them.
func ioPriority(in *specs.LinuxIOPriority) int {
	class := 0
	switch in.Class {
	case specs.IOPRIO_CLASS_RT:
		class = 1
	case specs.IOPRIO_CLASS_BE:
		class = 2
	case specs.IOPRIO_CLASS_IDLE:
		class = 3
	}
	return class<<13 | in.Priority
}

// mask turns a list such as "0-3,7" into a bit mask of 64-bit words.
func mask(list string) ([]uint64, bool) {
	l, err := ledger.ParseList(list)
	return l.Words(), err == nil && l.Len() > 0
}

// memoryPolicy translates linux.memoryPolicy for set_mempolicy(2).
func memoryPolicy(in *specs.LinuxMemoryPolicy) (*MemoryPolicy, string) {
	m := &MemoryPolicy{}
	switch in.Mode {
	case specs.MpolDefault:
		m.Mode = unix.MPOL_DEFAULT
	case specs.MpolPreferred:
		m.Mode = unix.MPOL_PREFERRED
	case specs.MpolBind:
		m.Mode = unix.MPOL_BIND
	case specs.MpolInterleave:
		m.Mode = unix.MPOL_INTERLEAVE
	case specs.MpolLocal:
		m.Mode = unix.MPOL_LOCAL
	case specs.MpolPreferredMany:
		m.Mode = unix.MPOL_PREFERRED_MANY
	case specs.MpolWeightedInterleave:
		m.Mode = unix.MPOL_WEIGHTED_INTERLEAVE
	default:
		return nil, "unknown mode " + strconv.Quote(string(in.Mode))
	}
	for _, flag := range in.Flags {
		switch flag {
		case specs.MpolFNumaBalancing:
			m.Mode |= unix.MPOL_F_NUMA_BALANCING
		case specs.MpolFRelativeNodes:
			m.Mode |= unix.MPOL_F_RELATIVE_NODES
		case specs.MpolFStaticNodes:
			m.Mode |= unix.MPOL_F_STATIC_NODES
		default:
			return nil, "unknown flag " + strconv.Quote(string(flag))
		}
	}
	if in.Nodes != "" {
		nodes, ok := mask(in.Nodes)
		if !ok {
			return nil, "nodes: " + strconv.Quote(in.Nodes) + " is not a list of numbers such as 0-3,7"
		}
		m.Nodes = nodes
	}
	return m, ""
}

// Inherit gives a process added by exec what binds all of the container's
// processes, whatever its own object says: the filter, the memory policy and
// the personality are the container's. What confines the first process binds this
// one as well where its own object, in, is silent about that.
func (p *Process) Inherit(container *Process, in *specs.Process) {
	p.Seccomp = container.Seccomp
	p.MemoryPolicy = container.MemoryPolicy
	p.Personality = container.Personality
	p.Landlock = container.Landlock
	p.KeepGroups = container.KeepGroups
	if in.Capabilities == nil {
		p.Bounding, p.Effective, p.Permitted = container.Bounding, container.Effective, container.Permitted
		p.Inheritable, p.Ambient = container.Inheritable, container.Ambient
	}
	if in.ApparmorProfile == "" {
		p.AppArmor = container.AppArmor
	}
	if in.SelinuxLabel == "" {
		p.SELinux = container.SELinux
	}
	if in.OOMScoreAdj == nil {
		p.OOMScoreAdj = container.OOMScoreAdj
	}
	if in.Scheduler == nil {
		p.Scheduler = container.Scheduler
	}
	if in.IOPriority == nil {
		p.IOPriority = container.IOPriority
	}
}
