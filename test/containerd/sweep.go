package containerd

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// sweepVariable names, in a guard's environment, the directory of the daemon that it guards, and
// its program of the shim.
const sweepVariable = "BERTH_TEST_SWEEP"

// guard has another process of this program clear away what is the daemon's, should this one end
// before its tests do: of go test's time limit, or a signal. release is for when nothing is left.
// It needs Main.
func (d *Daemon) guard() (release func(), err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), sweepVariable+"="+d.Dir+":"+d.Shim)
	// What ends the tests by a signal to their group is not to end the guard.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() {
		io.WriteString(in, released)
		in.Close()
		cmd.Wait()
	}, nil
}

// released is what a guard reads that has nothing to do any more.
const released = "released"

// guarding is what a guard does: it waits for the end of the tests.
func guarding(what string) {
	if text, _ := io.ReadAll(os.Stdin); string(text) == released {
		return
	}
	dir, shim, _ := strings.Cut(what, ":")
	d := &Daemon{Dir: dir, Shim: shim, Cgroup: "/" + filepath.Base(dir)}
	d.sweep()
	os.RemoveAll(dir)
}

// sweep ends all that is the daemon's, and removes it.
func (d *Daemon) sweep() {
	end := time.Now().Add(time.Minute)
	for pids := d.processes(); len(pids) > 0 && time.Now().Before(end); pids = d.processes() {
		for _, pid := range pids {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		d.thaw()
		time.Sleep(5 * time.Millisecond)
	}
	for _, point := range d.Mounts() {
		syscall.Unmount(point, syscall.MNT_DETACH)
	}
	groups := append(d.tops(), d.Cgroups()...)
	for i := len(groups) - 1; i >= 0; i-- {
		syscall.Rmdir(groups[i])
	}
}

// processes are those in the cgroups of the daemon's containers, and those that have its directory
// in their command line: itself, shims and keepers.
func (d *Daemon) processes() (pids []int) {
	for _, group := range append(d.tops(), d.Cgroups()...) {
		text, _ := os.ReadFile(filepath.Join(group, "cgroup.procs"))
		for _, word := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
	}
	return append(pids, processesBy(func(cmdline string) bool { return strings.Contains(cmdline, "\x00"+d.Dir+"/") })...)
}

// thaw has paused containers see their SIGKILL.
func (d *Daemon) thaw() {
	for _, group := range d.Cgroups() {
		for file, value := range map[string]string{"cgroup.freeze": "0", "freezer.state": "THAWED"} {
			if f, err := os.OpenFile(filepath.Join(group, file), os.O_WRONLY, 0); err == nil {
				f.WriteString(value)
				f.Close()
			}
		}
	}
}

// Cut starts the test of a name in another process of this program, in which it may make one daemon
// in a directory that it prints as a line, and kills that process then. It gives the directory.
func Cut(t *testing.T, test string, env ...string) (dir string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	var said strings.Builder
	buf := make([]byte, 1024)
	for {
		n, err := out.Read(buf)
		said.Write(buf[:n])
		for line := range strings.Lines(said.String()) {
			if dir, is := strings.CutPrefix(line, CutMark); is && strings.HasSuffix(dir, "\n") {
				return strings.TrimSpace(dir)
			}
		}
		if err != nil {
			t.Fatalf("the test that is to be killed has ended: %v\n%s", err, said.String())
		}
	}
}

// CutMark is what that line begins with.
const CutMark = "made in "
