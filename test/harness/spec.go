package harness

import (
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// DefaultCaps are the capabilities of the default config.
var DefaultCaps = []string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_MKNOD", "CAP_NET_BIND_SERVICE",
	"CAP_NET_RAW", "CAP_SETFCAP", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID", "CAP_SYS_CHROOT",
}

// DefaultSpec is a config like the ones that container managers write: all namespaces but user and
// time, the usual mounts, masked and read-only paths, and the devices closed but for the usual
// ones.
func DefaultSpec(cgroupsPath string, args ...string) *specs.Spec {
	return &specs.Spec{
		Version: "1.0.2",
		Root:    &specs.Root{Path: "rootfs"},
		Process: &specs.Process{
			Args: args,
			Cwd:  "/",
			Env:  []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TERM=xterm"},
			Capabilities: &specs.LinuxCapabilities{
				Bounding: DefaultCaps, Effective: DefaultCaps, Permitted: DefaultCaps,
			},
		},
		Hostname: "berth-test",
		Mounts: []specs.Mount{
			{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
			{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "strictatime", "mode=755", "size=65536k"}},
			{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"}},
			{Destination: "/dev/shm", Type: "tmpfs", Source: "shm", Options: []string{"nosuid", "noexec", "nodev", "mode=1777", "size=65536k"}},
			{Destination: "/dev/mqueue", Type: "mqueue", Source: "mqueue", Options: []string{"nosuid", "noexec", "nodev"}},
			{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "noexec", "nodev", "ro"}},
		},
		Linux: &specs.Linux{
			CgroupsPath: cgroupsPath,
			Namespaces: []specs.LinuxNamespace{
				{Type: specs.PIDNamespace}, {Type: specs.NetworkNamespace}, {Type: specs.IPCNamespace},
				{Type: specs.UTSNamespace}, {Type: specs.MountNamespace}, {Type: specs.CgroupNamespace},
			},
			MaskedPaths:   []string{"/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/scsi", "/sys/firmware"},
			ReadonlyPaths: []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"},
			Resources:     &specs.LinuxResources{Devices: defaultDeviceRules()},
		},
	}
}

func defaultDeviceRules() []specs.LinuxDeviceCgroup {
	rules := []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}}
	for _, d := range [][2]int64{{1, 3}, {1, 5}, {1, 7}, {1, 8}, {1, 9}, {5, 0}, {5, 2}} {
		rules = append(rules, specs.LinuxDeviceCgroup{Allow: true, Type: "c", Major: &d[0], Minor: &d[1], Access: "rwm"})
	}
	major := int64(136)
	return append(rules, specs.LinuxDeviceCgroup{Allow: true, Type: "c", Major: &major, Access: "rwm"})
}

// UserNamespace gives the config a user namespace whose ids 0 to 65535 are those from 100000 on
// outside.
func UserNamespace(s *specs.Spec) {
	s.Linux.Namespaces = append(s.Linux.Namespaces, specs.LinuxNamespace{Type: specs.UserNamespace})
	ids := []specs.LinuxIDMapping{{ContainerID: 0, HostID: 100000, Size: 65536}}
	s.Linux.UIDMappings, s.Linux.GIDMappings = ids, ids
}

// WithoutNamespace takes a namespace out of the config.
func WithoutNamespace(s *specs.Spec, kind specs.LinuxNamespaceType) {
	var kept []specs.LinuxNamespace
	for _, ns := range s.Linux.Namespaces {
		if ns.Type != kind {
			kept = append(kept, ns)
		}
	}
	s.Linux.Namespaces = kept
}

// NamespacePath makes the container join the namespace at path instead of getting a new one.
func NamespacePath(s *specs.Spec, kind specs.LinuxNamespaceType, path string) {
	WithoutNamespace(s, kind)
	s.Linux.Namespaces = append(s.Linux.Namespaces, specs.LinuxNamespace{Type: kind, Path: path})
}
