package node

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/cgroup"
)

// The cgroupfs driver moves the processes of the root into the system container, and
// the kubelet into its own; undo moves them back. Here the root is that of a cgroup
// namespace, so that the processes are the test's own, and not the machine's.
func TestProcessesAreMoved(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("making cgroups at the top takes root")
	}
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		t.Skip("systemd owns the top of the hierarchy here")
	}
	if _, err := exec.LookPath("unshare"); err != nil {
		t.Skip(err)
	}
	host, err := cgroup.Detect()
	if err != nil {
		t.Skip(err)
	}
	if memory := host.Controller("memory"); memory == nil || memory.Version == 2 {
		t.Skip("on version 2 only the root of the whole hierarchy may have processes besides children with controllers; a namespace's is none")
	}
	g, err := host.Create(fmt.Sprintf("/berth-node-moves-%d", os.Getpid()))
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := g.Purge(); err != nil {
			t.Error(err)
		}
	})
	dir := t.TempDir()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip(err)
	}
	text, err := os.ReadFile(sleep)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "kubelet"), text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	var mounts strings.Builder
	for _, h := range host.Hierarchies() {
		kind, options := "cgroup", strings.Join(h.Controllers, ",")
		if h.Version == 2 {
			kind, options = "cgroup2", ""
		} else if h.Name != "" {
			options = strings.Trim("none,name="+h.Name, ",")
		}
		if options != "" {
			options = "-o " + options
		}
		fmt.Fprintf(&mounts, "mkdir -p %s; mount -t %s %s none %s\n", h.Mountpoint, kind, options, h.Mountpoint)
	}
	node := program(t) + " %s --state-dir=" + dir + "/state --system-container=/system --resource-container=/kubelet --cgroup-root=/work --kernel-parameters=off --berth-parent=off --oom-score-mode=off\n"
	script := "set -e\nmount -t tmpfs none /sys/fs/cgroup\n" + mounts.String() + `
sleep 1000 & loose=$!
` + dir + `/kubelet 1000 & kubelet=$!
# Until it is what it will be.
while [ "$(cat /proc/$kubelet/comm)" != kubelet ]; do :; done
show() { for p in 1 $loose $kubelet; do echo "$1 $p $(sed -n 's/.*:memory://p' /proc/$p/cgroup)"; done | sed "s/ $loose / loose /; s/ $kubelet / kubelet /"; }
show before
` + fmt.Sprintf(node, "apply") + "show during\n" + fmt.Sprintf(node, "undo") + "show after\nls -d /sys/fs/cgroup/memory/system /sys/fs/cgroup/memory/kubelet 2> /dev/null || echo gone\n"

	// The shell enters the cgroup, and makes the namespaces then: their root is that.
	cmd := exec.Command("sh", "-c", `for procs in "$@"; do echo 0 > $procs; done; exec unshare --cgroup --mount --pid --fork --mount-proc --kill-child sh -c "$SCRIPT"`, "sh")
	for _, h := range host.Hierarchies() {
		cmd.Args = append(cmd.Args, g.Directory(h.String())+"/cgroup.procs")
	}
	cmd.Env = append(os.Environ(), "SCRIPT="+script)
	out, err := cmd.CombinedOutput()
	if err != nil && strings.Contains(string(out), "unshare failed") {
		t.Skipf("%s", out)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"before loose /\n", "before kubelet /\n", "during 1 /\n", "during loose /system\n", "during kubelet /kubelet\n", "after loose /\n", "after kubelet /\n", "gone\n"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}
