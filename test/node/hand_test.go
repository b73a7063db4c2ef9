package node

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// shell lets a shell do something, and waits until it has. It stays after that, as
// one that people use.
func shell(t *testing.T, script string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", script+"; echo done; read wait")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "done\n" {
		t.Fatalf("%s: %q, %v", script, line, err)
	}
}

// byShell is how a report names it, or nobody where the kernel has no fanotify.
func byShell(t *testing.T) string {
	t.Helper()
	fd, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_CLOEXEC, unix.O_RDONLY)
	if err != nil {
		t.Logf("the kernel does not say who writes: fanotify: %v", err)
		return ""
	}
	unix.Close(fd)
	path, err := exec.LookPath("sh")
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return "by " + path + " (pid "
}

// Without systemd the daemon mends real cgroups, and says who changed them.
func TestDriftOfCgroups(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("making cgroups at the top takes root")
	}
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		t.Skip("systemd owns the top of the hierarchy here")
	}
	host, top := topGroup(t, "drift")
	state := t.TempDir()
	said := filepath.Join(state, "said")
	out, err := os.Create(said)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	berthNode := program(t)
	node := func(command string) *exec.Cmd {
		cmd := exec.Command(berthNode, command, "--state-dir="+state, "--listen=off", "--kernel-parameters=off", "--berth-parent=off", "--oom-score-mode=off", "--recheck-interval=1h",
			"--cgroup-root="+top+"/work", "--pods-enforce=true", "--system-reserved=pids=100")
		cmd.Stdout, cmd.Stderr = out, out
		return cmd
	}
	socket := filepath.Join(state, "notify")
	notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer notify.Close()
	daemon := node("watch")
	daemon.Env = append(os.Environ(), "NOTIFY_SOCKET="+socket)
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		daemon.Process.Kill()
		daemon.Wait()
	})
	message := make([]byte, 256)
	_ = notify.SetReadDeadline(time.Now().Add(90 * time.Second))
	if n, err := notify.Read(message); err != nil || !strings.HasPrefix(string(message[:n]), "READY=1\n") {
		text, _ := os.ReadFile(said)
		t.Fatalf("it is not ready: %q, %v; it said:\n%s", message[:n], err, text)
	}
	says := func(want string) {
		t.Helper()
		for until := time.Now().Add(90 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			text, _ := os.ReadFile(said)
			if strings.Contains(string(text), want) {
				return
			}
			if time.Now().After(until) {
				t.Fatalf("%s: not said, but:\n%s", want, text)
			}
		}
	}
	work, err := host.Open(top + "/work")
	if err != nil {
		t.Fatal(err)
	}
	defer work.Close()
	wanted, err := work.ReadFile("pids.max")
	if err != nil {
		t.Fatal(err)
	}
	shell(t, "echo 7 > "+work.Directory("pids")+"/pids.max")
	says("pids.max is 7 where --pods-enforce wants " + wanted + "; changed " + byShell(t))
	says("pids.max is " + wanted + " again")
	if got, err := work.ReadFile("pids.max"); err != nil || got != wanted {
		t.Errorf("pids.max is %s, %v", got, err)
	}
	daemon.Process.Kill()
	daemon.Wait()
	if err := node("undo").Run(); err != nil {
		text, _ := os.ReadFile(said)
		t.Errorf("undo: %v\n%s", err, text)
	}
	if _, err := os.Stat(work.Directory("pids")); !os.IsNotExist(err) {
		t.Errorf("what was made is there: %v", err)
	}
}

// A daemon that a person starts is in the cgroup of what started it, a service maybe, whose other
// processes it leaves where they are.
func TestWatchByHand(t *testing.T) {
	m := mine(t)
	if os.Getenv("INVOCATION_ID") == "" {
		t.Skip("this is no service of systemd's")
	}
	before := m.read("/proc/self/cgroup")
	dir := t.TempDir()
	r := &resting{TB: t, socket: dir + "/http"}
	t.Cleanup(func() { m.try(m.program, "undo", "--config=/dev/null", "--state-dir="+dir+"/state") })
	r.start(exec.Command(m.program, "watch", "--config=/dev/null", "--state-dir="+dir+"/state", "--listen=unix:"+r.socket, "--kernel-parameters=off", "--oom-score-mode=off", "--berth-parent=off"))
	if now := m.read("/proc/self/cgroup"); now != before {
		t.Errorf("it has moved the test from\n%s\nto\n%s", before, now)
	}
	if its := m.read("/proc/" + strconv.Itoa(r.pid) + "/cgroup"); its != before {
		t.Errorf("it is in\n%s\nand was started in\n%s", its, before)
	}
}
