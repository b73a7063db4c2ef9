package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// The right to set a cgroup's limits is not the right to put processes into it.
func TestCgroupAdminIsNotForTasks(t *testing.T) {
	b := harness.New(t)
	needCgroupTools(b)
	harness.Controller(t, "pids")
	path := "/" + b.Tag
	tool(b, "create", "-a", "12345:12345", path).OK(t)
	t.Cleanup(func() { tool(b, "delete", path).OK(t) })
	for file, want := range map[string]uint32{"pids.max": 12345, "cgroup.procs": 0, "tasks": 0} {
		var st syscall.Stat_t
		err := syscall.Stat(filepath.Join(dirOf(t, "pids", path), file), &st)
		if file == "tasks" && os.IsNotExist(err) {
			continue // version 2 has none
		}
		if err != nil || st.Uid != want || st.Gid != want {
			t.Errorf("%s: owner %d:%d, want %d (%v)", file, st.Uid, st.Gid, want, err)
		}
	}
}

// A process that is classified without -g stays where systemd knows it: in its unit's cgroup of the
// hierarchy without controllers.
func TestCgroupClassifyStaysInUnit(t *testing.T) {
	b := harness.New(t)
	needCgroupTools(b)
	named := "/sys/fs/cgroup/systemd"
	if _, err := os.Stat(named + "/cgroup.procs"); err != nil || onV2(t) {
		harness.Skip(t, "needs version 1's name=systemd: %v", err)
	}
	sleep := exec.Command("sleep", "1000")
	must(t, sleep.Start())
	unit, path := named+"/"+b.Tag+".service", "/"+b.Tag
	must(t, os.Mkdir(unit, 0o755))
	t.Cleanup(func() {
		sleep.Process.Kill()
		sleep.Wait()
		must(t, os.Remove(unit))
	})
	pid := strconv.Itoa(sleep.Process.Pid)
	must(t, os.WriteFile(unit+"/cgroup.procs", []byte(pid), 0))
	tool(b, "create", path).OK(t)
	tool(b, "classify", path, pid).OK(t)
	now := readFile(t, procPath(sleep.Process.Pid, "cgroup"))
	if !strings.Contains(now, ":name=systemd:/"+b.Tag+".service\n") || !regexp.MustCompile(`:[a-z,]*\bpids\b[a-z,]*:`+path+"\n").MatchString(now) {
		t.Errorf("it is in\n%s", now)
	}
	// Who names the hierarchy means it.
	tool(b, "classify", "-g", "name=systemd:"+path, pid).OK(t)
	if now = readFile(t, procPath(sleep.Process.Pid, "cgroup")); !strings.Contains(now, ":name=systemd:"+path+"\n") {
		t.Errorf("by name it is in\n%s", now)
	}
	tool(b, "delete", "--kill", path).OK(t)
}
