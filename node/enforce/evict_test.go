package enforce

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-runtime/berth/node/machine"
	"github.com/berth-runtime/berth/node/machine/fake"
)

// A container is killed with all its processes, though its cgroup is another program's.
func TestKill(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("making cgroups at the top takes root")
	}
	m, err := machine.Open()
	if err != nil {
		t.Skip(err)
	}
	at := fmt.Sprintf("/berth-node-kill-%d", os.Getpid())
	g, err := m.Cgroups.Create(at)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := g.Destroy(); err != nil {
			t.Error(err)
		}
	})
	cmd := exec.Command("sh", "-c", "sleep 900 & wait")
	if err := g.Start(cmd); err != nil {
		t.Fatal(err)
	}
	if err := Kill(m, at); err != nil {
		cmd.Process.Kill()
		t.Error(err)
	}
	cmd.Wait()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
		t.Errorf("it ended by %v", cmd.ProcessState)
	}
	if err := Kill(fake.New(t, "unified", false).Machine, at); err == nil || !strings.Contains(err.Error(), "none of this machine") {
		t.Errorf("on another machine: %v", err)
	}
}
