package doctor

import (
	"strings"
)

// securityModules tells which of them may stand between a container and what it
// wants.
func securityModules(m *Machine) []Finding {
	f := Finding{Check: "security modules", For: Everyone, Found: strings.ReplaceAll(m.read("sys/kernel/security/lsm"), ",", " ")}
	if f.Found == "" {
		f.State, f.Found = Note, "not known: securityfs is not mounted"
		f.Fix = []Fix{m.sudo("mount -t securityfs securityfs /sys/kernel/security")}
	}
	findings := []Finding{f}
	if m.read("sys/module/apparmor/parameters/enabled") == "Y" && m.find("apparmor_parser") == "" {
		findings = append(findings, Finding{Check: "AppArmor", For: Root, State: Note, Found: "on, but apparmor_parser is not installed",
			Without: "profiles that configs name can't be loaded", Fix: []Fix{m.install("apparmor", "apparmor-parser", "apparmor", "apparmor-parser", "apparmor")}})
	}
	switch m.read("sys/fs/selinux/enforce") {
	case "1":
		findings = append(findings, Finding{Check: "SELinux", For: Everyone, Found: "enforcing"})
	case "0":
		findings = append(findings, Finding{Check: "SELinux", For: Everyone, Found: "permissive"})
	}
	return findings
}

// overlay looks for the file system that images are put together by.
func overlay(m *Machine) []Finding {
	f := Finding{Check: "overlay file system", For: Everyone, Found: "there"}
	for line := range strings.Lines(m.read("proc/filesystems")) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[len(fields)-1] == "overlay" {
			return []Finding{f}
		}
	}
	f.State, f.Found, f.Without = Gap, "not loaded", "engines can't put layers of an image together"
	f.Fix = []Fix{m.sudo("modprobe overlay"), dropIn("/etc/modules-load.d/overlay.conf", "overlay\n")}
	return []Finding{f}
}
