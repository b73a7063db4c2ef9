package plan

import (
	"github.com/berth-runtime/berth/internal/caps"
	"github.com/berth-runtime/berth/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// A Plan is everything that will be done to the machine for one container.
type Plan struct {
	ID          string
	Bundle      string
	Annotations map[string]string

	Root       Root
	Namespaces []Namespace
	IDs        IDMaps
	Mounts     []Mount
	Devices    []Device
	Links      []Link
	Masked     []Path
	Readonly   []Path
	Sysctls    []Setting

	Hostname, Domainname string
	// TimeOffsets is what goes to /proc/self/timens_offsets, a line a clock.
	TimeOffsets string

	Cgroup Cgroup
	// Lacks are the capabilities that can be granted to no process of the container.
	Lacks   caps.Set
	Process Process
	Hooks   specs.Hooks
	// NameDenials and Learn are what the annotations ask for about the seccomp filter.
	NameDenials, Learn bool
	NoPivot            bool
	// NotifyDir is a directory on the host for the notify socket, "" for none.
	NotifyDir string
	// Init lets the container's first process stay a minder of the others, and
	// executes the program in the second.
	Init     bool
	Keyring  string // name of the session keyring to join; "" for none
	NetUp    bool   // bring the loopback device of a new network namespace up
	Label    string // SELinux context for mounts
	NetDevs  []NetDevice
	Rdt      *specs.LinuxIntelRdt
	Warnings []string
}

// Root is the container's root file system on the host.
type Root struct {
	Path     string // absolute
	Readonly bool
	// Propagation of the mount tree as the container's processes see it
	// (MS_SHARED, …), from rootfsPropagation; slave when nothing is said, so that
	// the host's unmounts still reach the container and nothing goes back.
	Propagation uintptr
	// Discard makes it the lower layer of overlays whose upper ones are a tmpfs that
	// goes with the container; DiscardAt is the entry that says so.
	Discard   bool
	DiscardAt string
	// DiscardBut is a directory of it that can't be written to at all, "" for none.
	DiscardBut string
	// Handed lets the runtime have what is written, before and after.
	Handed bool
	At     string
	// Slave is set where the config asks for the root to follow the host's mounts; by default
	// only those in it do.
	Slave bool
}

// Namespace is one namespace that the container does not share with us.
type Namespace struct {
	Type specs.LinuxNamespaceType
	Flag uintptr // CLONE_NEW…
	Path string  // "" makes a new one
	At   string
}

// IDMaps are the mappings of a new user namespace.
type IDMaps struct {
	UID, GID []specs.LinuxIDMapping
}

// Root are the ids that files are made with: 0 where it is mapped.
func (m *IDMaps) Root() (uid, gid uint32) { return rootOfMap(m.UID), rootOfMap(m.GID) }

func rootOfMap(maps []specs.LinuxIDMapping) uint32 {
	for _, m := range maps {
		if m.ContainerID == 0 {
			return 0
		}
	}
	if len(maps) > 0 {
		return maps[0].ContainerID
	}
	return 0
}

// Path is a path inside the container, with the entry that names it.
type Path struct {
	Path string
	At   string
}

// Setting is a value for a file below /proc/sys.
type Setting struct {
	File  string // relative to /proc/sys
	Value string
	At    string
}

// Link is a symbolic link made in the container. One that exists stays.
type Link struct {
	Path, Target string
}

// Device is a device node inside the container.
type Device struct {
	Path         string
	Type         byte // 'c', 'b' or 'p'
	Major, Minor uint32
	Mode         uint32
	UID, GID     uint32
	// Own is set where the config names a mode or an owner.
	Own bool
	// Bind takes a node of the host's by a bind mount; mknod is not to be had in a
	// user namespace.
	Bind bool
	At   string
}

// NetDevice is a network device of the host that moves into the container.
type NetDevice struct {
	Name, NewName string
	At            string
}

// Process is what the container's first process, or one added by exec, is given.
type Process struct {
	Args []string
	// Path, which the entry PathAt says, is executed as it is; "" looks Args[0] up.
	Path, PathAt string
	Env          []string
	Cwd          string
	Terminal     bool
	Console      *specs.Box

	UID, GID uint32
	Groups   []uint32
	// KeepGroups leaves it the further groups of the runtime's caller.
	KeepGroups bool
	Umask      uint32
	HasUmask   bool

	// A process has the capabilities that its config names, and none where that
	// names none.
	Bounding, Effective, Inheritable, Permitted, Ambient caps.Set

	Rlimits         []Rlimit
	NoNewPrivileges bool
	OOMScoreAdj     *int
	AppArmor        string
	SELinux         string
	Scheduler       *Scheduler
	IOPriority      *int // as ioprio_set(2) takes it
	// InitialAffinity are the CPUs to run on before the process is in its cgroup,
	// Affinity those afterwards, as bit masks; empty leaves it to the kernel.
	InitialAffinity []uint64
	Affinity        []uint64
	// KeepAffinity leaves the process on the CPUs that it was started on; otherwise it
	// gets all of its cgroup.
	KeepAffinity bool
	MemoryPolicy *MemoryPolicy
	Personality  *uint64
	Seccomp      *Seccomp
	Landlock     *Landlock

	// PreserveFDs is how many descriptors from 3 on reach the process.
	PreserveFDs int
	At          string // pointer of the process object
}

// Rlimit is one limit for prlimit(2).
type Rlimit struct {
	Name       string
	Resource   int
	Soft, Hard uint64
	At         string
}

// Scheduler is the argument of sched_setattr(2).
type Scheduler struct {
	Policy                    uint32
	Flags                     uint64
	Nice                      int32
	Priority                  uint32
	Runtime, Deadline, Period uint64
	Clamps                    uint64 // least and greatest utilisation, 32 bits each
}

// MemoryPolicy is the argument of set_mempolicy(2).
type MemoryPolicy struct {
	Mode  int
	Nodes []uint64 // bit mask
}

// Seccomp is a compiled filter and what becomes of its listener.
type Seccomp struct {
	Filter           *seccomp.Filter
	ListenerPath     string
	ListenerMetadata string
	Profile          *specs.LinuxSeccomp
	// Refuses is what the filter was before it was watched, nil for one that is not.
	Refuses *seccomp.Filter
	// Learns says that what it allows is asked about, too.
	Learns bool
	// Pass, if it is not 0, lets the init hand the listener over: the sixth argument of the calls
	// by which it does.
	Pass uint64
}

// Namespace returns the container's namespace of a type, or nil where it
// shares ours.
func (p *Plan) Namespace(t specs.LinuxNamespaceType) *Namespace {
	for i := range p.Namespaces {
		if p.Namespaces[i].Type == t {
			return &p.Namespaces[i]
		}
	}
	return nil
}

// Makes reports whether the container gets a new namespace of the type.
func (p *Plan) Makes(t specs.LinuxNamespaceType) bool {
	n := p.Namespace(t)
	return n != nil && n.Path == ""
}
