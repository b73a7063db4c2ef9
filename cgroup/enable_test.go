package cgroup

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestNoInternalProcesses(t *testing.T) {
	host := hostForTest(t)
	needRoot(t, host)
	u := needUnified(t, host)
	controller := domainController(t, u)
	restoreSubtreeControl(t, u)
	parent := makeGroup(t, host, Only("unified"))
	cmd := start(t, parent, "sleep")
	_, err := host.Create(parent.Path()+"/x", Only("unified"), Enable(controller))
	var e *Error
	if !errors.As(err, &e) || !errors.Is(err, syscall.EBUSY) || !strings.Contains(e.Hint, strconv.Itoa(cmd.Process.Pid)) {
		t.Fatalf("got %v", err)
	}
	// Not demanded, it is left out.
	g, err := host.Create(parent.Path()+"/x", Only("unified"))
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Destroy(); err != nil {
		t.Fatal(err)
	}
	// In a delegated place the processes are moved, if asked for.
	markDelegated(t, parent)
	g, err = host.Create(parent.Path()+"/x", Only("unified"), Enable(controller), Supervisor("supervisor"))
	if err != nil {
		t.Fatal(err)
	}
	if own, err := host.OfProcess(cmd.Process.Pid, Only("unified")); err != nil || own.Path() != parent.Path()+"/supervisor" {
		t.Errorf("the process is in %v, %v", own, err)
	} else {
		own.Close()
	}
	if got := readFileOf(t, g, "unified", "cgroup.controllers"); !strings.Contains(got, controller) {
		t.Errorf("controllers %q", got)
	}
	// And the other way round: a group that gives controllers takes no processes.
	if err := parent.Join(cmd.Process.Pid); !errors.Is(err, syscall.EBUSY) || !strings.Contains(err.Error(), "gives controllers to its children ("+controller) {
		t.Errorf("got %v", err)
	}
	if err := g.Destroy(); err != nil {
		t.Error(err)
	}
}

// domainController finds a controller that is not for threads.
func domainController(t testing.TB, u *Hierarchy) string {
	t.Helper()
	for _, name := range u.Controllers {
		switch name {
		case "cpu", "cpuset", "pids", "perf_event":
		default:
			return name
		}
	}
	t.Skip("no domain controller on version 2 here")
	return ""
}

func TestControllerThatIsNotThere(t *testing.T) {
	host := hostForTest(t)
	needUnified(t, host)
	if _, err := host.Create(testPath(), Enable("nonsense")); !errors.Is(err, ErrNoController) {
		t.Errorf("got %v", err)
	}
	for _, h := range host.Hierarchies() {
		if h.Version == 1 && len(h.Controllers) > 0 {
			_, err := host.Create(testPath(), Enable(h.Controllers[0]))
			if !errors.Is(err, ErrNoController) || !strings.Contains(err.Error(), "version 1") {
				t.Errorf("got %v", err)
			}
			break
		}
	}
}

func TestThreadedGroups(t *testing.T) {
	host := hostForTest(t)
	needUnified(t, host)
	parent := makeGroup(t, host, Only("unified"))
	threaded, err := host.Create(parent.Path()+"/t", Only("unified"), Enable())
	if err != nil {
		t.Fatal(err)
	}
	defer threaded.Destroy()
	invalid, err := host.Create(parent.Path()+"/i", Only("unified"), Enable())
	if err != nil {
		t.Fatal(err)
	}
	defer invalid.Destroy()
	if err := os.WriteFile(threaded.Directory("unified")+"/cgroup.type", []byte("threaded"), 0); err != nil {
		t.Fatal(err)
	}
	for g, want := range map[*Group]Type{parent: DomainThreaded, threaded: Threaded, invalid: DomainInvalid} {
		if kind, err := g.Type(); kind != want || err != nil {
			t.Errorf("%s is %q, %v; want %q", g.Path(), kind, err, want)
		}
	}
	cmd := roleCommand("sleep")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if err := invalid.Join(cmd.Process.Pid); !errors.Is(err, syscall.EOPNOTSUPP) || !strings.Contains(err.Error(), "domain invalid") {
		t.Errorf("join of an invalid domain: %v", err)
	}
	if err := parent.Join(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(threaded.Directory("unified")+"/cgroup.threads", []byte(strconv.Itoa(cmd.Process.Pid)), 0); err != nil {
		t.Fatal(err)
	}
	if pids, err := threaded.Procs(); err != nil || len(pids) != 1 || pids[0] != cmd.Process.Pid {
		t.Errorf("threads of the threaded group: %v, %v", pids, err)
	}
	if err := threaded.Kill(); err != nil {
		t.Errorf("kill of a threaded group: %v", err)
	}
	if err := parent.WaitEmpty(); err != nil {
		t.Error(err)
	}
}
