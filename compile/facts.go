package compile

import "golang.org/x/sys/unix"

// Facts are what the runtime found out or prepared for this one start.
type Facts struct {
	// Report is the descriptor of the socket to the runtime. Every failure and
	// every Ask goes there.
	Report int
	// Gate is a listening socket that the created container waits at for its
	// start; -1 lets it wait on Report instead.
	Gate int
	// Joins are the open namespaces to enter, in order.
	Joins []Join
	// NewNamespaces are the CLONE_NEW flags that the runtime did not put into its
	// clone, because the Program must enter something else first.
	NewNamespaces uintptr
	// Fork makes the Program go on in a child: a pid or time namespace takes hold
	// of children only.
	Fork bool
	// MapIDs waits for the runtime to map the ids of the user namespace that the
	// Program itself makes.
	MapIDs bool
	// AwaitCgroup waits for the runtime to put the process into its cgroup, before
	// anything is done that depends on it.
	AwaitCgroup bool
	// Tasks are v1 tasks files to which the Program writes itself. For a
	// single-threaded process that spares the RCU grace period that a write to
	// cgroup.procs waits for (8 to 20 ms).
	Tasks []string
	// Sources describes the source of each mount of the Plan, by index.
	Sources []Source
	// RootParent is the mount point that holds the root file system, where
	// that mount must be taken out of its peer group first.
	RootParent string
	// Layers make up a root file system whose writes are discarded.
	Layers []Layer
	// Life is a descriptor whose end of file says that the runtime is gone; with
	// Plan.Init the minder waits for that.
	Life int
	// CgroupDirs are the container's own directories in each hierarchy, for
	// mounts of type cgroup.
	CgroupDirs []CgroupDir
	// ChownStdio says which of the descriptors 0 to 2 are to belong to the user.
	ChownStdio [3]bool
	// RootUID and RootGID are whom the Program becomes to make files: the root of
	// the user namespace, or another id that is mapped.
	RootUID, RootGID uint32
	// KeepGroups is set where the user namespace has setgroups denied.
	KeepGroups bool
	// Visible lets the runtime's user look at the process while hooks run.
	Visible bool
	// RootFD is a root directory to change to after the namespaces are entered, 0
	// for the root of the mount namespace.
	RootFD int
	// OpenFiles is the hard limit of open files, 0 to keep to the soft one.
	OpenFiles uint64
	// NoMountSetattr is set where the kernel has no mount_setattr(2), which came with
	// Linux 5.12. Spare is then a descriptor whose number is free for the Program.
	NoMountSetattr bool
	Spare          int
	// TimerSlack is what the process is to have, in nanoseconds; 0 leaves it what it is.
	TimerSlack uint64
	// LastCap is the highest capability that the kernel knows.
	LastCap int
	// Stamps lets the Program tell when it made each of its calls.
	Stamps bool
}

// inherited lists the descriptors that the Program was given for its own use.
func (f *Facts) inherited() []int {
	fds := []int{f.Report}
	if f.Gate >= 0 {
		fds = append(fds, f.Gate)
	}
	for _, fd := range []int{f.RootFD, f.Spare} {
		if fd > 0 {
			fds = append(fds, fd)
		}
	}
	for _, j := range f.Joins {
		fds = append(fds, j.FD)
	}
	for _, s := range f.Sources {
		if s.FD > 0 {
			fds = append(fds, s.FD)
		}
	}
	return fds
}

// Join is a namespace to enter by an inherited descriptor.
type Join struct {
	FD   int
	Flag uintptr
	At   string
	Text string
}

// Source is the source of a mount.
type Source struct {
	Dir bool
	// FD is a detached mount that the runtime has prepared, 0 for none.
	FD int
}

// CgroupDir is one hierarchy as it appears in the container.
type CgroupDir struct {
	Name  string   // directory below the mount point; "" for the only one
	Path  string   // on the host
	Links []string // other names: the controllers of a hierarchy that has several
}

// Ask is what a Program waits for the runtime to do.
type Ask uint32

const (
	// Ready: the container is created. The answer lets it go to its gate.
	Ready Ask = iota + 1
	// Console: the descriptor is the terminal's master.
	Console
	// Hooks: namespaces exist, the root is not pivoted yet.
	Hooks
	// Listener: the descriptor is the seccomp listener.
	Listener
	// MapIDs: the user namespace has no mappings yet.
	MapIDs
	// Device: the descriptor is a file that stands where device number Value of
	// the Plan was to be made; is it that device?
	Device
	// CopyFrom and CopyTo: copy all that the first descriptor holds to the second,
	// for mount number Value of the Plan.
	CopyFrom
	CopyTo
	// StartHooks: start was called, the startContainer hooks are due.
	StartHooks
	// Forked: Value is the pid that the Program goes on in, and that is answered.
	Forked
	// Limits: a resource limit beyond the Program's rights is to be set.
	Limits
	// Minder: Value is the pid of the process that minds the others. It is not
	// answered.
	Minder
	// Plain: number Value of the layers is no overlay, but mounted read-only.
	Plain
	// Cgroup: the cgroup is to be made around the process, as systemd makes a scope.
	Cgroup
	// MountFlags: the descriptor is a mount whose attributes are to be changed as
	// Value says (ParseMountChange). The answer is preceded by a list of RemountStep.
	MountFlags
	// OOMScore: the score of an added process is to be set, which takes the rights of
	// the runtime where it is lowered.
	OOMScore
)

// askMagic begins each record of an Ask, so that it can't be taken for a failure.
const askMagic = 0x4b534142 // "BASK"

// Record is an Ask as it came over the socket.
type Record struct {
	Kind  Ask
	Value uint64
}

// ParseAsk reads the record of an Ask: magic and kind as 32-bit words, a value
// of 64 bits.
func ParseAsk(b []byte) (Record, bool) {
	if len(b) != 16 || word(b) != askMagic {
		return Record{}, false
	}
	return Record{Kind: Ask(word(b[4:])), Value: uint64(word(b[8:])) | uint64(word(b[12:]))<<32}, true
}

func word(b []byte) uint32 {
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

// Flags of openat2(2) that resolve inside the container's root and follow none
// of the links of /proc that lead out of any root.
const inRoot = unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS
