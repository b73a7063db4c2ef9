package kernel

// Features that something in the code depends on by name: it tries them, or refuses what
// needs one.
var (
	Openat2         = Feature{Name: "`openat2`, RESOLVE_IN_ROOT", Least: "5.6", Use: "every path in a container is resolved inside its root"}
	MountAPI        = Feature{Name: "`fsopen`, `fsconfig`, `fsmount`, `fspick`", Least: "5.2", Use: "new file systems, with an error for each option"}
	MountSetattr    = Feature{Name: "`mount_setattr`", Least: "5.12", Use: "attributes of bind mounts and whole trees (`rro`), read-only paths and root, propagation of mounts", Without: "`mount` with MS_REMOUNT, one call for each mount of a tree, once it is attached; a tree in which one mount lies under another is refused", Cost: "a call for each mount of the tree, and a message to the runtime"}
	TreeNamespace   = Feature{Name: "`open_tree` with OPEN_TREE_NAMESPACE", Least: "7.0", Use: "the mount namespace of a container begins with its root alone; not with a user namespace, hooks of the creation, an init of ours, `--no-pivot` or a joined pid namespace", Without: "it begins as a copy of the host's, whose mounts are unmounted again behind pivot_root", Cost: "grows with the mounts of the host"}
	ProcfsOfPids    = Feature{Name: "procfs with `pidns`", Least: "6.18", Use: "a container that joins a pid namespace is set up outside of it, out of reach of those in it ([why](threat-model.md))", Without: "set up inside of it: who is there with CAP_SYS_PTRACE, outside of any user namespace, could take its init over"}
	IDMap           = Feature{Name: "idmapped mounts (MOUNT_ATTR_IDMAP)", Least: "5.12", More: "and a file system that can", Use: "`idmap`, `ridmap`, uidMappings of mounts", Without: "refused, with the entry that asks for it"}
	CloneIntoCgroup = Feature{Name: "`clone3` with CLONE_INTO_CGROUP", Least: "5.7", Use: "the child begins in its version 2 cgroup, without a grace period; what `exec` adds clones itself into one that its container could freeze", Without: "below the floor, and refused if a filter blocks `clone3` (ENOSYS, as with systemd's RestrictNamespaces=), except that the process that clones itself writes itself into cgroup.procs instead; version 1 is joined by the child itself, and needs no `clone3`"}
	Pidfd           = Feature{Name: "CLONE_PIDFD, `pidfd_open`, waiting by poll", Least: "5.3", Use: "a process is never mistaken for another"}
	TimeNamespace   = Feature{Name: "time namespaces", Least: "5.6", Use: "`time` namespaces, timeOffsets; also needs CONFIG_TIME_NS", Without: "refused if the config asks for one"}
	Landlock        = Feature{Name: "Landlock", Least: "5.13", Use: "[annotations](landlock.md); rights of 5.19, 6.2 and 6.10 where they are there", Without: "refused, with the annotation that asks for it"}
	PidfdGetfd      = Feature{Name: "`pidfd_getfd`", Least: "5.6", Use: "terminals and seccomp listeners are fetched from a process"}
	Memfd           = Feature{Name: "`memfd_create`", Least: "3.17", Use: "the init is executed from memory"}
	Overlay         = Feature{Name: "overlay in a user namespace", Least: "5.11", Use: "`run.berth.root.writes` and images of ordinary users", Without: "refused; users' engines need fuse-overlayfs, or copy images"}
	CgroupKill      = Feature{Name: "`cgroup.kill`", Least: "5.14", Use: "one write kills all processes of a group", Without: "frozen, signalled until no new process is listed, thawed", Cost: "a read of all members and a signal for each, until none is left"}
	CPUBurst        = Feature{Name: "`cpu.max.burst`, `cpu.cfs_burst_us`", Least: "5.14", Use: "cpu.burst", Without: "an error that names /linux/resources/cpu/burst"}
	CPUIdle         = Feature{Name: "`cpu.idle`", Least: "5.15", Use: "cpu.idle", Without: "an error that names the entry"}
	Pressure        = Feature{Name: "PSI in each group", Least: "4.20", More: "CONFIG_PSI", Use: "pressure in statistics", Without: "left out of them"}
	CgroupPressure  = Feature{Name: "`cgroup.pressure`", Least: "6.1", Use: "may be set through unified", Without: "an error that names the key"}
	DeviceProgram   = Feature{Name: "programs for devices (BPF_CGROUP_DEVICE)", Least: "4.15", Use: "device rules on version 2"}
	SeccompNotify   = Feature{Name: "user notification", Least: "5.0", Use: "SCMP_ACT_NOTIFY"}
	SeccompFilter   = Feature{Name: "filters, `seccomp(2)`", Least: "3.17", Use: "profiles"}
)

// Sections are all features, as docs/kernel-features.md has them.
var Sections = []Section{
	{"Starting containers", []*Feature{
		&Openat2,
		{Name: "`open_tree`, `move_mount`", Least: "5.2", Use: "mounts are created detached and attached by descriptor, never by path"},
		&MountAPI,
		&MountSetattr,
		&TreeNamespace,
		&ProcfsOfPids,
		&IDMap,
		{Name: "`close_range` with CLOEXEC", Least: "5.11", Use: "no descriptor of the caller reaches the container", Without: "`berth` and the shim mark what they find in /proc/self/fd at start, and the init what it was given", Cost: "a call for each descriptor"},
		{Name: "`close_range`", Least: "5.9", Use: "closes the setup's descriptors"},
		{Name: "`listmount`, `statmount`", Least: "6.8", More: "6.11 for cgroup v1", Use: "the cgroup hierarchies are found below /sys/fs/cgroup without reading the table of all mounts, which grows with the number of containers", Without: "the table, which is also read if a hierarchy is mounted elsewhere, read-only or in part", Cost: "up to 6.5 ms at 5,000 mounts, instead of 0.07"},
		&CloneIntoCgroup,
		&Pidfd,
		{Name: "`pidfd_send_signal`", Least: "5.1", Use: "signals"},
		&TimeNamespace,
		{Name: "`faccessat2`", Least: "5.8", Use: "finds the program with its user's permissions"},
		{Name: "MFD_EXEC", Least: "6.3", Use: "the init's memfd may be executed where vm.memfd_noexec is 1", Without: "created without the flag, as on older kernels; with vm.memfd_noexec=2 the init is a file of a detached, read-only tmpfs, which only root can make", Cost: "a mount of its own for the init"},
		{Name: "TIOCGPTPEER", Least: "4.13", Use: "the terminal's slave is opened through its master"},
		{Name: "attr/apparmor/exec", Least: "5.8", Use: "AppArmor's own attribute where security modules are stacked", Without: "attr/exec"},
		{Name: "CAP_CHECKPOINT_RESTORE", Least: "5.9", Use: "the highest capability is asked of the kernel (PR_CAPBSET_READ), so newer ones are dropped too", Without: "–"},
		{Name: "moving network devices that are up", Least: "6.2", Use: "netDevices", Without: "always taken down before, and brought up after"},
		{Name: "`set_mempolicy` with MPOL_PREFERRED_MANY, WEIGHTED_INTERLEAVE", Least: "5.15", More: "6.9", Use: "memoryPolicy", Without: "the kernel refuses it, and the error names the entry"},
		&Landlock,
		{Name: "Landlock, on the runtime itself", Least: "5.13", Use: "while it waits, a foreground `run`, `exec` or `box` can no longer change the host ([why](decisions/confinement.md))", Without: "it keeps its file access; no_new_privs and the dropped capabilities still apply"},
		{Name: "soft-dirty memory, userfaultfd", Least: "3.11", More: "4.3", Use: "`checkpoint --pre-dump`, `--lazy-pages`, asked of criu", Without: "refused"},
		&PidfdGetfd,
		&Memfd,
		&Overlay,
	}},
	{"Cgroups", []*Feature{
		&CgroupKill,
		{Name: "`cgroup.freeze`, `frozen` in cgroup.events", Least: "5.2", Use: "pause; also on hybrid hosts for what is on version 2", Without: "the version 1 freezer"},
		{Name: "BPF_F_REPLACE", Least: "5.6", Use: "device rules are replaced without a gap"},
		{Name: "JMP32 in BPF", Least: "5.1", Use: "compares device numbers without extension"},
		{Name: "memory of BPF not counted by RLIMIT_MEMLOCK", Least: "5.11", Use: "loading device programs", Without: "refused with EPERM, it is tried again with the limit raised for that one call"},
		&CPUBurst,
		&CPUIdle,
		{Name: "`hugetlb.SIZE.rsvd.max`", Least: "5.7", Use: "reservations are limited, not just usage", Without: "below the floor; not written where the file is missing"},
		{Name: "user extended attributes", Least: "5.7", Use: "marks of delegation and of `berth cgroup` that ordinary users can see", Without: "trusted ones, for root"},
		&Pressure,
		&CgroupPressure,
		{Name: "`memory.peak`", Least: "5.19", Use: "peak memory usage", Without: "left out, 0 in runc's shape"},
		{Name: "time spent frozen in `cgroup.stat.local`", Least: "6.18", Use: "statistics", Without: "left out"},
		{Name: "`memory.kmem.limit_in_bytes`", Least: "gone: 5.4 to 5.16", Use: "–", Without: "refused by the kernel; said so"},
		&DeviceProgram,
	}},
	{"Seccomp", []*Feature{
		&SeccompNotify,
		{Name: "SECCOMP_FILTER_FLAG_TSYNC_ESRCH", Least: "5.7", Use: "TSYNC together with a listener"},
		{Name: "bitmap of calls that are always allowed", Least: "5.11", Use: "filters put what needs no look at arguments where the kernel finds that out at load time", Without: "the filter runs for each call"},
		{Name: "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV", Least: "5.19", Use: "the flag of the same name in a profile", Without: "`features` does not list it; a profile that has it is refused by the kernel"},
		&SeccompFilter,
	}},
	{"The node", []*Feature{
		{Name: "fanotify, FAN_CLASS_NOTIF", Least: "2.6.37", More: "CONFIG_FANOTIFY, CAP_SYS_ADMIN", Use: "`berth-node watch` says who wrote to a cgroup's file or a kernel parameter", Without: "inotify: only that something did"},
		{Name: "PIDFD_NONBLOCK", Least: "5.10", Use: "waits for daemons to exit, without a thread for each"},
		{Name: "`/proc/PID/loginuid`", Least: "2.6", More: "CONFIG_AUDIT", Use: "the login user behind a changed setting", Without: "left out"},
		{Name: "`memory.high`, PSI", Least: "4.5", More: "4.20", Use: "memory is reclaimed before its limit is lowered", Without: "on version 1 the kernel reclaims, or refuses the limit"},
	}},
}
