package integration

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

func hasAppArmor() bool {
	on, err := os.ReadFile("/sys/module/apparmor/parameters/enabled")
	return err == nil && strings.TrimSpace(string(on)) == "Y"
}

func hasSELinux() bool {
	_, err := os.Stat("/sys/fs/selinux/enforce")
	return err == nil
}

// A profile that nobody can apply is an error and not left out, for the container and for what is
// added to it.
func TestAppArmorIsMissing(t *testing.T) {
	if hasAppArmor() {
		harness.Skip(t, "needs a kernel without AppArmor")
	}
	b := harness.New(t)
	c := b.Container("/bin/true")
	c.Spec.Process.ApparmorProfile = "berth-test"
	c.Run().Fails(t, "/process/apparmorProfile", "berth-test", "not in this kernel")
	c.Spec.Process.ApparmorProfile = "unconfined" // asks for nothing
	c.Run().OK(t)
	running := b.Container("/inside", "hang").RunDetached()
	running.Exec([]string{"--apparmor", "berth-test"}, "/bin/true").FailsWith(t, 255, "process: /apparmorProfile", "berth-test", "not in this kernel")
}

// The kernel says by which profile a process is confined.
func TestAppArmor(t *testing.T) {
	if !hasAppArmor() {
		harness.Skip(t, "needs a kernel with AppArmor")
	}
	parser := harness.NeedTool(t, "apparmor_parser", "apparmor")
	b := harness.New(t)
	name := b.Tag
	profile := b.WriteFile("profile", "profile "+name+" flags=(attach_disconnected,mediate_deleted) {\n  file,\n  capability,\n  network,\n  signal,\n  mount,\n  deny /secret rw,\n}\n", 0o644)
	if out, err := exec.Command(parser, "--replace", "--skip-cache", profile).CombinedOutput(); err != nil {
		t.Fatalf("load the profile: %v: %s", err, out)
	}
	defer exec.Command(parser, "--remove", profile).Run()
	words := []string{"read=/proc/self/attr/current", "read=/secret", "read=/etc/passwd"}
	check := func(how, out string) {
		t.Helper()
		got := harness.ParseAttempts(t, out)
		if at := strings.TrimSpace(got[words[0]].Result); at != name+" (enforce)" {
			t.Errorf("%s: confined by %q, want %s", how, at, name)
		}
		harness.Refused(t, got, words[1], "EACCES")
		harness.Allowed(t, got, words[2])
	}
	c := b.Container(append([]string{"/inside", "try"}, words...)...)
	c.WriteFile("secret", "x", 0o644)
	c.Spec.Process.ApparmorProfile = name
	check("the container", c.Run().OK(t).Stdout)
	running := b.Container("/inside", "hang")
	running.WriteFile("secret", "x", 0o644)
	running.RunDetached()
	check("exec", running.Exec([]string{"--apparmor", name}, append([]string{"/inside", "try"}, words...)...).OK(t).Stdout)
	missing := b.Container("/bin/true")
	missing.Spec.Process.ApparmorProfile = name + "-missing"
	missing.Run().Fails(t, "/process/apparmorProfile", name+"-missing")
}

// A label of a process that nobody can apply is an error that names its entry.
func TestSELinuxIsMissing(t *testing.T) {
	if hasSELinux() {
		harness.Skip(t, "needs a kernel without SELinux")
	}
	b := harness.New(t)
	const label = "system_u:system_r:container_t:s0:c1,c2"
	c := b.Container("/bin/true")
	c.Spec.Process.SelinuxLabel = label
	c.Run().Fails(t, "/process/selinuxLabel", label)
	c = b.Container("/bin/true")
	c.Spec.Linux.MountLabel = label
	// It would confine nobody.
	c.Run().OK(t).Warns(t, "/linux/mountLabel", "not in this kernel")
	running := b.Container("/inside", "hang").RunDetached()
	running.Exec([]string{"--process-label", label}, "/bin/true").FailsWith(t, 255, "process: /selinuxLabel", label)
}

// An exec of an ordinary user asks for it by the procfs that there is: it may not make one outside
// of the container.
func TestSELinuxIsMissingForOrdinaryUser(t *testing.T) {
	if hasSELinux() {
		harness.Skip(t, "needs a kernel without SELinux")
	}
	b := harness.New(t)
	c := b.AsOrdinaryUser(t, 0).Container("/inside", "hang").RunDetached()
	const label = "system_u:system_r:container_t:s0:c1,c2"
	c.Exec([]string{"--process-label", label}, "/bin/true").FailsWith(t, 255, "process: /selinuxLabel", "ask for the SELinux label", "SELinux is not in this kernel")
	c.Kill("KILL").WaitExit()
}

// The process has its label, and new file systems that of the mounts. It takes a policy with these
// types, as Fedora's and Debian's default ones.
func TestSELinux(t *testing.T) {
	if !hasSELinux() {
		harness.Skip(t, "needs a kernel with SELinux, and a policy")
	}
	b := harness.New(t)
	const process, mount = "system_u:system_r:container_t:s0:c1,c2", "system_u:object_r:container_file_t:s0:c1,c2"
	c := b.Container("/inside", "try", "read=/proc/self/attr/current", "read=/proc/self/mountinfo")
	c.Spec.Process.SelinuxLabel, c.Spec.Linux.MountLabel = process, mount
	c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: "/fresh", Type: "tmpfs", Source: "tmpfs"})
	got := harness.ParseAttempts(t, c.Run().OK(t).Stdout)
	if at := strings.TrimRight(got["read=/proc/self/attr/current"].Result, "\x00\n"); at != process {
		t.Errorf("the process is %q, want %s", at, process)
	}
	for _, line := range strings.Split(got["read=/proc/self/mountinfo"].Result, "\n") {
		if strings.Contains(line, " /fresh ") && !strings.Contains(line, mount) {
			t.Errorf("a file system without the label: %s", line)
		}
	}
}
