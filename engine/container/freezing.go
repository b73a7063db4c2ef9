package container

import (
	"path/filepath"
	"slices"
	"strconv"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/internal/caps"
	"github.com/berth-runtime/berth/internal/proc/mountinfo"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// mayBeFrozenMeanwhile reports whether a process of the container may come to write to the cgroup
// of version 2 that the new one begins in, and freeze it between our look at it and the clone.
//
// A mount that the config has writable is one way of many: with CAP_SYS_ADMIN a read-only one is
// made writable, or another mounted; and any process may do the latter in a user namespace of its
// own, with no capability at all, and then owns the files as it did before (cgroup_namespaces(7)).
// So what counts is what it may become: an owner of the files, with a way to a mount.
func (e *execer) mayBeFrozenMeanwhile(g *cgroup.Group) bool {
	dir := g.Directory("unified")
	if dir == "" {
		return false
	}
	var file unix.Stat_t
	if err := unix.Stat(filepath.Join(dir, "cgroup.freeze"), &file); err == nil && !mayOwn(e.plan, file.Uid) {
		return false
	}
	if (e.plan.Process.Bounding|e.process.Bounding)&(1<<caps.SysAdmin) != 0 {
		return true
	}
	s, err := e.Config()
	if err != nil || s.Linux == nil || !refusesToMount(s.Linux.Seccomp) {
		return true
	}
	mounts, err := mountinfo.Of(strconv.Itoa(e.Pid), "cgroup2")
	return err != nil || slices.ContainsFunc(mounts, func(m mountinfo.Entry) bool {
		return !mountinfo.HasOption(m.Options, "ro") && !mountinfo.HasOption(m.Super, "ro")
	})
}

// mayOwn reports whether a process of the container may have a user id of the host's. In a user
// namespace without that id, the capabilities to do without it have no effect on its files
// (capable_wrt_inode_uidgid).
func mayOwn(p *plan.Plan, uid uint32) bool {
	if !p.Makes(specs.UserNamespace) {
		return true
	}
	return slices.ContainsFunc(p.IDs.UID, func(m specs.LinuxIDMapping) bool {
		return uid >= m.HostID && uid-m.HostID < m.Size
	})
}

// refusesToMount reports whether a filter lets no new mount come about, be it one that is attached
// nowhere: whatever the arguments, as a rule that tells by those may be for any.
func refusesToMount(s *specs.LinuxSeccomp) bool {
	return s != nil && refuses(s, "mount") && refuses(s, "fsmount")
}

func refuses(s *specs.LinuxSeccomp, call string) bool {
	refused := isRefusal(s.DefaultAction)
	for _, rule := range s.Syscalls {
		if !slices.Contains(rule.Names, call) {
			continue
		}
		if !isRefusal(rule.Action) {
			return false
		}
		refused = refused || len(rule.Args) == 0
	}
	return refused
}

func isRefusal(a specs.LinuxSeccompAction) bool {
	return a == specs.ActErrno || a == specs.ActKill || a == specs.ActKillProcess || a == specs.ActKillThread || a == specs.ActTrap
}
