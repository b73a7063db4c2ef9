package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/test/harness"
)

// systemd itself boots in a container, from the host's own files, takes the cgroup tree that it is
// given, and ends when it is told to. Meanwhile the host's systemd-machined knows it, so that its
// journal can be read from outside.
func TestSystemdAsPayload(t *testing.T) {
	b := systemdAsRoot(t)
	needV2(t)
	if _, err := os.Stat("/usr/lib/systemd/systemd"); err != nil {
		harness.Skip(t, "needs systemd in /usr/lib/systemd: %v", err)
	}
	journalctl := harness.NeedTool(t, "journalctl", "systemd")
	harness.NeedTool(t, "machinectl", "systemd-container")
	const machineID = "0123456789abcdef0123456789abcdef"
	c, unit := unitContainer(b, "/usr/lib/systemd/systemd", "--unit=payload.target", "--log-target=console")
	root := c.Rootfs()
	must(t, os.RemoveAll(root))
	for _, dir := range []string{"usr", "etc/systemd/system", "proc", "sys", "dev", "run", "tmp", "var"} {
		must(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	for _, link := range []string{"bin", "sbin", "lib", "lib64"} {
		must(t, os.Symlink("usr/"+link, filepath.Join(root, link)))
	}
	for name, text := range map[string]string{
		"etc/passwd": "root:x:0:0::/root:/bin/sh\nmessagebus:x:101:101::/:/bin/false\n", "etc/group": "root:x:0:\nmessagebus:x:101:\n",
		"etc/machine-id": machineID + "\n", "etc/os-release": "ID=test\n",
		// The smallest system: a service of its own, and nothing of the host's.
		"etc/systemd/system/payload.target": "[Unit]\nWants=payload.service\nAfter=payload.service\nDefaultDependencies=no\n",
		"etc/systemd/system/payload.service": "[Unit]\nDefaultDependencies=no\nRequires=systemd-journald.service\nAfter=systemd-journald.service\n" +
			"[Service]\nExecStart=/bin/sh -c 'echo said inside; exec sleep infinity'\nStandardOutput=journal\nTasksMax=50\nMemoryMax=50M\n",
		// The one that comes with systemd wants more rights than containers have, to give most of
		// them up.
		"etc/systemd/system/systemd-journald.service": "[Unit]\nDefaultDependencies=no\nRequires=systemd-journald.socket\nAfter=systemd-journald.socket\n" +
			"[Service]\nType=notify\nExecStart=/usr/lib/systemd/systemd-journald\nSockets=systemd-journald.socket\n",
	} {
		must(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o644))
	}
	c.Spec.Mounts = append(c.Spec.Mounts,
		specs.Mount{Destination: "/usr", Type: "bind", Source: "/usr", Options: []string{"rbind", "ro"}},
		specs.Mount{Destination: "/run", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "nodev", "mode=755"}},
		// Debian's systemd mounts it itself if need be, which takes a right that containers do not
		// have.
		specs.Mount{Destination: "/run/lock", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "nodev", "noexec", "mode=1777"}},
		specs.Mount{Destination: "/tmp", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "nodev"}},
		specs.Mount{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup", Options: []string{"rw", "nosuid", "noexec", "nodev"}},
	)
	c.Spec.Annotations = map[string]string{"run.oci.systemd.subgroup": "container", "run.berth.machined": "true"}
	c.Spec.Process.Env = append(c.Spec.Process.Env, "container=berth", "container_uuid="+machineID)
	c.RunDetached()
	// Nothing is added before its services have their cgroups: a process in its root would keep it
	// from giving them controllers.
	inside := filepath.Join("/sys/fs/cgroup", property(t, unit, "ControlGroup"), "container")
	wait.Until(t, "its service has a limit", func() bool {
		text, err := os.ReadFile(filepath.Join(inside, "system.slice/payload.service/pids.max"))
		return err == nil && string(text) == "50\n"
	})
	state := ""
	wait.Until(t, "systemd is running in the container", func() bool {
		state = strings.TrimSpace(c.Exec(nil, "/bin/systemctl", "is-system-running").Stdout)
		return state == "running" || state == "degraded"
	})
	if state != "running" {
		t.Errorf("it is %s: %s", state, c.Exec(nil, "/bin/systemctl", "list-units", "--failed", "--no-legend").Stdout)
	}
	if got := property(t, unit, "ActiveState"); got != "active" {
		t.Errorf("the unit is %s", got)
	}
	// Its cgroups have controllers, and more processes are still let in.
	c.Exec(nil, "/bin/true").OK(t)
	var journal []byte
	wait.Until(t, "journalctl -M has what the service has said", func() bool {
		journal, _ = exec.Command(journalctl, "-M", c.ID, "--no-pager", "-o", "cat", "-u", "payload.service").CombinedOutput()
		return strings.Contains(string(journal), "said inside\n")
	})
	if t.Failed() {
		t.Logf("%s", journal)
	}
	c.Kill("RTMIN+3")
	if status := c.WaitExit(); !status.Exited() && status.Signal() != unix.SIGINT && status.Signal() != unix.SIGHUP {
		t.Errorf("it ended with %v", status)
	}
	c.Delete()
	gone(t, unit)
}
