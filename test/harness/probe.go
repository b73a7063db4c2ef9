package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// NeedContainers skips the test where no container can be run. New does it too.
func NeedContainers(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		Skip(t, "needs root")
	}
	if _, err := busybox(); err != nil {
		Skip(t, "needs a static busybox: %v", err)
	}
}

// NeedTool returns the path of a program of the host, and skips the test where it isn't installed.
func NeedTool(t testing.TB, name, debianPackage string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Skip(t, "needs %s (Debian has it in the package %s)", name, debianPackage)
	}
	return path
}

// ChosenPids tells why no procfs can be made of a pid namespace from outside of it; nil where it
// can.
func ChosenPids() error {
	fs, err := unix.Fsopen("proc", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(fs)
	own, err := unix.Open("/proc/self/ns/pid", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(own)
	if err := unix.FsconfigSetFd(fs, "pidns", own); err != nil {
		return fmt.Errorf("the procfs of this kernel has no option pidns, which came with Linux 6.18: %w", err)
	}
	return nil
}

// NeedNamespace skips the test where the kernel has no such namespaces, or allows none.
func NeedNamespace(t testing.TB, kind string) {
	t.Helper()
	if _, err := os.Stat("/proc/self/ns/" + kind); err != nil {
		Skip(t, "needs %s namespaces: %v", kind, err)
	}
	if most, err := os.ReadFile("/proc/sys/user/max_" + kind + "_namespaces"); err == nil && strings.TrimSpace(string(most)) == "0" {
		Skip(t, "needs %s namespaces: user.max_%s_namespaces is 0", kind, kind)
	}
}

// NeedCapability skips the test where root itself lacks a capability, as it does in some virtual
// machines and containers.
func NeedCapability(t testing.TB, number int, name string) {
	t.Helper()
	if !HasCapability(t, number) {
		Skip(t, "needs the capability %s", name)
	}
}

// HasCapability says whether this process has a capability in effect.
func HasCapability(t testing.TB, number int) bool {
	t.Helper()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		t.Fatal(os.NewSyscallError("capget", err))
	}
	return data[number/32].Effective&(1<<(number%32)) != 0
}

// NeedV2 skips the test where the host has no cgroup v2 hierarchy, not even a hybrid host's, and
// returns its directory.
func NeedV2(t testing.TB) string {
	t.Helper()
	for _, h := range Hierarchies(t) {
		if h.Unified {
			return h.Dir
		}
	}
	Skip(t, "needs a cgroup v2 hierarchy")
	return ""
}

// NeedFilesystem skips the test where the kernel has no such file system.
func NeedFilesystem(t testing.TB, name string) {
	t.Helper()
	list, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(list), "\n") {
		if strings.TrimSpace(strings.TrimPrefix(line, "nodev")) == name {
			return
		}
	}
	Skip(t, "needs the file system %s", name)
}

// NeedFile skips the test where a file of /proc or /sys is missing, with what is missing in the
// reason.
func NeedFile(t testing.TB, pattern, what string) string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		Skip(t, "needs %s: there is no %s", what, pattern)
	}
	return found[0]
}
