package main

// elsewhere are the words by which docker, podman, bubblewrap, nsjail, firejail and systemd-run
// know the options of a box, where they are not alike enough to be found.
var elsewhere = map[string][]string{
	"ro":       {"ro-bind", "ro-bind-try", "bindmount_ro"},
	"rw":       {"bind", "bind-try", "bindmount", "whitelist"},
	"tmp":      {"tmpfsmount", "private", "blacklist"},
	"env":      {"setenv"},
	"workdir":  {"chdir", "cwd", "working-directory"},
	"rootfs":   {"chroot", "root-directory"},
	"timeout":  {"time_limit", "stop-timeout", "runtime-max-sec"},
	"device":   {"dev-bind", "devices", "gpus"},
	"seccomp":  {"security-opt", "seccomp_policy", "add-seccomp-fd"},
	"user":     {"uid", "gid"},
	"ulimit":   {"rlimit", "rlimits"},
	"cap-drop": {"caps.drop"},
	"cap-add":  {"caps.keep", "cap"},
	"pids":     {"tasks-max"},
	"cpus":     {"cpu-quota", "cpu-period", "cpu-shares"},
	"io":       {"device-read-bps", "device-write-bps", "device-read-iops", "device-write-iops", "blkio-weight"},
	"net":      {"share-net", "unshare-net", "net-none", "disable_clone_newnet"},
	"dry-run":  {"dryrun"},
}

const (
	itsOwn = "a box always has its own namespaces, and --net says which network"
	atEnd  = "a box ends with berth, and everything in it"
)

// notInBoxes says why options of other programs are none of a box's.
var notInBoxes = map[string]string{
	"privileged": "a box is never privileged (--cap-add NAME gives it one capability, --device PATH one device)",
	"read-only":  "what is written to the root is discarded anyhow (--ro PATH shows a path read-only)", "readonly": "what is written to the root is discarded anyhow (--ro PATH shows a path read-only)",
	"memory-swap": "--memory allows no swap on top", "init": "a box always has an init",
	"pid": itsOwn, "ipc": itsOwn, "uts": itsOwn, "userns": itsOwn, "cgroupns": itsOwn, "unshare-all": itsOwn, "unshare-pid": itsOwn, "unshare-ipc": itsOwn,
	"unshare-uts": itsOwn, "unshare-user": itsOwn, "unshare-cgroup": itsOwn,
	"die-with-parent": atEnd, "new-session": "a box always has a session of its own",
	"pull": "berth downloads nothing (skopeo, docker save or podman save makes an image for --image)",
}

// inBundle says where what is an option of box comes from in a command that takes a bundle.
func (p *program) inBundle(name string) string {
	if name == "it" || p.boxCommand().Flags.Has(name) {
		return "config.json says that for a bundle; berth box has such an option"
	}
	return ""
}
