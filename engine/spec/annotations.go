package spec

// Annotations that say what the runtime specification has no entry for.
const (
	// RootWritesAnnotation says what becomes of writes to the root file system:
	// "discard" keeps them in memory and loses them with the container.
	RootWritesAnnotation = "run.berth.root.writes"
	// RootReadonlyAnnotation names a directory of a root file system whose writes are
	// discarded that can't be written to even so.
	RootReadonlyAnnotation = "run.berth.root.readonly"
	// LandlockPrefix begins those that limit access to files with Landlock.
	LandlockPrefix = "run.berth.landlock."
	// DenialsAnnotation has what the seccomp filter refuses named, where no command stays to do so:
	// "true".
	DenialsAnnotation = "run.berth.seccomp.denials"
	// LearnAnnotation has the system calls recorded as a profile, in the directory that the host's
	// settings name: "true".
	LearnAnnotation = "run.berth.seccomp.learn"
	// MachinedAnnotation registers the container with systemd-machined.
	MachinedAnnotation = "run.berth.machined"
	// SubgroupAnnotation puts the processes into a cgroup of this name inside of the
	// systemd unit's own, as crun does.
	SubgroupAnnotation = "run.oci.systemd.subgroup"
)
