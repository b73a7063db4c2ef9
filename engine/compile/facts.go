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
	// Outside keeps the Program out of the pid namespace that it joins until its process
	// is all that it will be: see Exec. It takes kernel.ProcfsOfPids.
	Outside bool
	// MapIDs waits for the runtime to map the ids of the user namespace that the
	// Program itself makes.
	MapIDs bool
	// AwaitCgroup waits for the runtime to put the process into its cgroup, before
	// anything is done that depends on it.
	AwaitCgroup bool
	// Group is the directory of a group of version 2 that the Program goes on in, in a clone
	// of itself, 0 for none: see container.group.enterLate.
	Group int
	// Tasks are files to which the Program writes itself: tasks on version 1, which for a
	// single-threaded process spares the RCU grace period that a write to cgroup.procs waits
	// for (8 to 20 ms), and cgroup.procs where nothing can be cloned into a group of version 2.
	Tasks []string
	// Sources describes the source of each mount of the Plan, by index.
	Sources []Source
	// Devices are nodes that the runtime has made for devices of the Plan.
	Devices []Node
	// RootParent is the mount point that holds the root file system, where
	// that mount must be taken out of its peer group first.
	RootParent string
	// OwnTree makes the mount namespace of the root file system's mounts alone, which takes
	// kernel.TreeNamespace, where the runtime's clone has made none.
	OwnTree bool
	// HostMounts are the mount points in the root mount of the host, where that can't be
	// left behind as pivot_root does it.
	HostMounts []string
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
	// RootUID and RootGID are the ids the Program takes on to create files: the root of
	// the user namespace, or another id that is mapped.
	RootUID, RootGID uint32
	// DropGroups lets go of the caller's supplementary groups before a namespace is
	// joined: it takes the right to, where the namespace may not give it.
	DropGroups bool
	// KeepGroups is set where the user namespace has setgroups denied.
	KeepGroups bool
	// OwnScore lets the Program set the process's score for the out-of-memory killer
	// itself: the file belongs to root in a process that is not dumpable, so the runtime
	// of an ordinary user can't.
	OwnScore bool
	// Visible lets the runtime's user look at the process while hooks run, and while it
	// waits for its start.
	Visible bool
	// RootFD is a root directory to change to after the namespaces are entered, 0
	// for the root of the mount namespace.
	RootFD int
	// OpenFiles is the hard limit of open files, 0 to keep to the soft one.
	OpenFiles uint64
	// NoMountSetattr is set where the kernel has no kernel.MountSetattr. Spare is then a
	// descriptor whose number is free for the Program.
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
	for _, fd := range []int{f.RootFD, f.Spare, f.Group} {
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
	for _, n := range f.Devices {
		fds = append(fds, n.FD)
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

// Node is a detached mount of a node for the device of that index.
type Node struct{ Device, FD int }

// CgroupDir is one hierarchy as it appears in the container.
type CgroupDir struct {
	Name string // directory below the mount point; "" for the only one
	Path string // on the host
	// Tree is where the host has the whole hierarchy, for a container that is to see all of
	// it, and its own directory at the place that /proc/self/cgroup tells; "" for a
	// container that sees its own directory alone.
	Tree  string
	Links []string // other names: the controllers of a hierarchy that has several
}

// Flags of openat2(2) that resolve inside the container's root and follow none
// of the links of /proc that lead out of any root.
const inRoot = unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS
