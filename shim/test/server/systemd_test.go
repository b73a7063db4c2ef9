package server_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/internal/test/wait"
	runcoptions "github.com/containerd/containerd/api/types/runc/options"
	"golang.org/x/sys/unix"
)

// With SystemdCgroup the container is a unit of systemd's, also for Update and
// Stats, and what it died of is known when its cgroup has gone with the unit.
// The init outlives the process that is killed: systemd removes the cgroup as soon
// as it is empty, and may be faster than its reader.
func TestSystemdCgroup(t *testing.T) {
	n := newNode(t)
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		t.Skip("systemd does not run here")
	}
	n.options = n.any("containerd.runc.v1.Options", &runcoptions.Options{Root: n.dir + "/engine", SystemdCgroup: true})
	name := strings.TrimPrefix(n.cgroup, "/")
	spec := n.limited("c", "sleep", "1000")
	spec.Linux.CgroupsPath = "system.slice:" + name + ":c"
	b := n.define("c", spec)
	n.must(b.create())
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", b.pid))
	n.must(err)
	if !strings.Contains(string(text), "/system.slice/"+name+"-c.scope") {
		t.Errorf("cgroups: %s", text)
	}
	n.must(b.begin(""))
	n.must(b.addExec("e", greedy...))
	n.must(b.begin("e"))
	if got := b.wait("e"); got != 137 {
		t.Errorf("the exec ended with %d", got)
	}
	n.must(b.kill(uint32(unix.SIGKILL)))
	if got := b.wait(""); got != 137 {
		t.Errorf("status %d", got)
	}
	wait.Until(n.t, "the end of the unit", func() bool {
		_, err := os.Stat("/sys/fs/cgroup/system.slice/" + name + "-c.scope")
		return err != nil
	})
	if got := b.oomKills(); got != 1 {
		t.Errorf("%d kills in the counters", got)
	}
	n.must(b.delete(""))
	n.wantEvents("c", "create", "start", "exec-added", "exec-started", "oom", "exit e 137", "exit c 137", "delete")
	// A killed shim's unit goes, too.
	d := b.join("d", n.spec("d", "sleep", "1000"))
	text, err = os.ReadFile(d.dir + "/config.json")
	n.must(err)
	n.must(os.WriteFile(d.dir+"/config.json", []byte(strings.Replace(string(text), n.cgroup+"/d", "system.slice:"+name+":d", 1)), 0o600))
	n.must(d.create())
	n.must(d.begin(""))
	b.kill9()
	n.cleanUp(d)
	n.cleanUp(b) // whose bundle knows of the socket
	if _, err := os.Stat("/sys/fs/cgroup/system.slice/" + name + "-d.scope"); err == nil {
		t.Error("the unit of a killed shim's container is left")
	}
}
