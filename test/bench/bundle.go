package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/berth-runtime/berth/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// kind says what a bundle's config asks for.
type kind string

const (
	plain    kind = "plain"
	filtered kind = "seccomp" // and Docker's default seccomp profile
	full     kind = "full"    // and limits of memory, cpu and pids
)

func (b *bench) root() string { return filepath.Join(b.dir, "rootfs") }

// makeRoot makes the root file system that all containers have: a static busybox
// and this program, for what is measured inside.
func (b *bench) makeRoot() error {
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return fmt.Errorf("%w (Debian: busybox-static)", err)
	}
	for _, dir := range []string{"bin", "etc", "proc", "sys", "dev", "tmp", "run"} {
		if err := os.MkdirAll(filepath.Join(b.root(), dir), 0o755); err != nil {
			return err
		}
	}
	if err := copyFile(busybox, filepath.Join(b.root(), "bin/busybox")); err != nil {
		return err
	}
	for _, name := range []string{"true", "sh", "sleep"} {
		if err := os.Symlink("busybox", filepath.Join(b.root(), "bin", name)); err != nil {
			return err
		}
	}
	own, err := os.Executable()
	if err != nil {
		return err
	}
	return copyFile(own, filepath.Join(b.root(), "bin/bench"))
}

// spec is what Docker's clients write, in an OCI version that all contenders know.
func (b *bench) spec(k kind, args ...string) *specs.Spec {
	capabilities := []string{"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FSETID", "CAP_FOWNER", "CAP_MKNOD", "CAP_NET_RAW", "CAP_SETGID",
		"CAP_SETUID", "CAP_SETFCAP", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_KILL", "CAP_AUDIT_WRITE"}
	private := []string{"nosuid", "noexec", "nodev"}
	s := &specs.Spec{
		Version: "1.0.2", Hostname: "bench",
		Root: &specs.Root{Path: b.root(), Readonly: true},
		Process: &specs.Process{
			Args: args, Cwd: "/", Env: []string{"PATH=/bin", "HOME=/"}, NoNewPrivileges: true,
			Capabilities: &specs.LinuxCapabilities{Bounding: capabilities, Effective: capabilities, Permitted: capabilities},
			Rlimits:      []specs.POSIXRlimit{{Type: "RLIMIT_NOFILE", Hard: 1024, Soft: 1024}},
		},
		Mounts: []specs.Mount{
			{Destination: "/proc", Type: "proc", Source: "proc", Options: private},
			{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "strictatime", "mode=755", "size=65536k"}},
			{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"}},
			{Destination: "/dev/shm", Type: "tmpfs", Source: "shm", Options: append([]string{"mode=1777", "size=65536k"}, private...)},
			{Destination: "/dev/mqueue", Type: "mqueue", Source: "mqueue", Options: private},
			{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: append([]string{"ro"}, private...)},
			{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup", Options: append([]string{"ro", "relatime"}, private...)},
		},
		Linux: &specs.Linux{
			Resources: &specs.LinuxResources{Devices: []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}}},
			Namespaces: []specs.LinuxNamespace{{Type: specs.PIDNamespace}, {Type: specs.NetworkNamespace}, {Type: specs.IPCNamespace},
				{Type: specs.UTSNamespace}, {Type: specs.MountNamespace}, {Type: specs.CgroupNamespace}},
			MaskedPaths:   []string{"/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware"},
			ReadonlyPaths: []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"},
		},
	}
	if k == plain {
		return s
	}
	s.Linux.Seccomp = seccomp.Default(capabilities...)
	if k == full {
		memory, quota, period, shares, pids := int64(512<<20), int64(200000), uint64(100000), uint64(512), int64(100)
		s.Linux.Resources.Memory = &specs.LinuxMemory{Limit: &memory}
		s.Linux.Resources.CPU = &specs.LinuxCPU{Quota: &quota, Period: &period, Shares: &shares}
		s.Linux.Resources.Pids = &specs.LinuxPids{Limit: &pids}
	}
	return s
}

// bundle writes a bundle, and gives its directory.
func (b *bench) bundle(name string, s *specs.Spec) (string, error) {
	return b.bundleIn(b.dir, name, s)
}

func (b *bench) bundleIn(parent, name string, s *specs.Spec) (string, error) {
	dir := filepath.Join(parent, "bundle-"+name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	s.Linux.CgroupsPath = "/" + b.cgroup + "/" + name
	data, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, "config.json"), data, 0o644)
}
