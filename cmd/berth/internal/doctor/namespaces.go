package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// namespaceLimits looks at the switches that keep processes from making
// namespaces.
func namespaceLimits(m *Machine) []Finding {
	f := Finding{Check: "namespace limits", For: Everyone, Found: "none is 0"}
	var findings []Finding
	for _, kind := range [...]string{"user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time"} {
		name := "user.max_" + kind + "_namespaces"
		if m.read("proc/sys/user/max_"+kind+"_namespaces") != "0" {
			continue
		}
		off := Finding{Check: f.Check, For: Everyone, State: Gap, Found: name + " is 0", Without: "no " + kind + " namespace can be made", Fix: m.setting(name, "31000")}
		if kind == "user" {
			off.For = User
		}
		findings = append(findings, off)
	}
	if len(findings) == 0 {
		findings = append(findings, f)
	}
	if !m.exists("proc/self/ns/user") && m.exists("proc/self/ns") {
		findings = append(findings, Finding{Check: "user namespaces", For: User, State: Gap, Found: "this kernel has none",
			Without: "users can't run containers", Fix: []Fix{{Run: "use a kernel with CONFIG_USER_NS"}}})
	}
	// A patch of Debian's kernels, on by default since bullseye.
	if m.read("proc/sys/kernel/unprivileged_userns_clone") == "0" {
		findings = append(findings, Finding{Check: "user namespaces", For: User, State: Gap, Found: "kernel.unprivileged_userns_clone is 0",
			Without: "users can't run containers", Fix: m.setting("kernel.unprivileged_userns_clone", "1")})
	}
	// Ubuntu's kernels since 23.10: a user namespace gives no rights, unless a
	// profile of the program says "userns".
	if m.read("proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" && !m.hasProfile() {
		findings = append(findings, m.apparmorRestricts("kernel.apparmor_restrict_unprivileged_userns is 1, and no AppArmor profile of "+m.Program+" is installed"))
	}
	return findings
}

func (m *Machine) apparmorRestricts(found string) Finding {
	return Finding{Check: "user namespaces", For: User, State: Gap, Found: found, Without: "users can't run containers",
		Fix: []Fix{dropIn(profileFile, `abi <abi/4.0>,
include <tunables/global>

profile berth `+m.Program+` flags=(unconfined) {
  userns,

  include if exists <local/berth>
}
`), m.sudo("apparmor_parser -r " + profileFile)}}
}

const profileFile = "/etc/apparmor.d/berth"

func (m *Machine) hasProfile() bool {
	found, err := filepath.Glob(m.path("etc/apparmor.d/*berth*"))
	return err == nil && len(found) > 0
}

// userNamespace makes a user namespace and a mount namespace in it, as a
// container of a user would: with AppArmor's restriction only the second fails.
func userNamespace(m *Machine) []Finding {
	f := Finding{Check: "user namespaces by trial", For: User, Found: "can be made, and give rights"}
	err := tryClone(&syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER, Unshareflags: unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
	})
	if err == nil {
		return []Finding{f}
	}
	f.State, f.Found, f.Without = Gap, err.Error(), "containers with a user namespace can't be made"
	switch {
	case !Healthy(namespaceLimits(m), User):
		// The reason, and what helps, is told there.
	case errors.Is(err, unix.ENOSPC):
		f.Found += " (the limit of user.max_user_namespaces is reached)"
		f.Fix = m.setting("user.max_user_namespaces", "31000")
	case errors.Is(err, unix.EPERM) && m.read("proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
		return []Finding{m.apparmorRestricts(f.Found + ", although there is an AppArmor profile")}
	case errors.Is(err, unix.EPERM):
		f.Fix = []Fix{{Run: "look for what forbids it: a seccomp filter of an outer container (docker run --security-opt seccomp=unconfined), a chroot, or a security module (journalctl -k)"}}
	}
	return []Finding{f}
}

// tryClone starts a process with the attributes that would execute what does not
// exist: that it comes so far means that the rest worked.
func tryClone(attr *syscall.SysProcAttr) error {
	pid, err := syscall.ForkExec("/nonexistent/berth-doctor", []string{"berth-doctor"}, &syscall.ProcAttr{Sys: attr})
	if err == nil {
		_, err = syscall.Wait4(pid, nil, 0, nil)
		return err
	}
	if err == syscall.ENOENT {
		return nil
	}
	return err
}
