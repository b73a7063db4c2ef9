package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

const (
	denialsAnnotation = "run.berth.seccomp.denials"
	learnAnnotation   = "run.berth.seccomp.learn"
)

// supervisors are the processes that answer a container's listeners.
func supervisors(t *testing.T, id string) (pids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if text, _ := os.ReadFile(file); string(text) == "berth-seccomp-supervisor\x00"+id+"\x00" {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

// reapSupervisors waits for those that the commands have left to us.
func reapSupervisors(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, _ := os.ReadFile(file)
		pid, rest, ours := strings.Cut(string(text), " (berth-seccomp) ")
		if fields := strings.Fields(rest); !ours || fields[1] != strconv.Itoa(os.Getpid()) {
			continue
		}
		number, err := strconv.Atoi(pid)
		if err != nil {
			t.Fatal(err)
		}
		for err = unix.EINTR; err == unix.EINTR; {
			_, err = unix.Wait4(number, nil, 0, nil)
		}
		if err != nil {
			t.Errorf("supervisor %d: %v", number, err)
		}
	}
}

// Where no command stays with a container, a process of its own names what is refused, of added
// processes too, and ends with what it answers for.
func TestSupervisorNamesDenials(t *testing.T) {
	b := harness.New(t)
	refused, other := fmt.Sprintf("syscall=%d,8", unix.SYS_PERSONALITY), fmt.Sprintf("syscall=%d", unix.SYS_GETPRIORITY)
	c := b.Container("sh", "-c", "read go < /go; exec /inside try "+refused)
	profileOf(c)
	c.Spec.Annotations = map[string]string{denialsAnnotation: "true"}
	if err := unix.Mkfifo(c.Path("go"), 0o666); err != nil {
		t.Fatal(err)
	}
	out, w := b.Pipe()
	c.Stdout = w
	c.Create().Start()
	w.Close()
	first := supervisors(t, c.ID)
	if len(first) != 1 {
		t.Fatalf("supervisors %v", first)
	}
	got := harness.ParseAttempts(t, c.Exec(nil, "/inside", "try", other).OK(t).Stdout)
	harness.Refused(t, got, other, "EPERM")
	if err := os.WriteFile(c.Path("go"), []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	harness.Refused(t, harness.ParseAttempts(t, out.All()), refused, "EOPNOTSUPP", "ENOTSUP")
	c.WaitExit()
	text := b.Berth("inspect", c.ID).OK(t).Stdout
	for _, want := range []string{"personality(PER_LINUX32) by inside[", "/linux/seccomp/syscalls/1", "getpriority", "/linux/seccomp/syscalls/0"} {
		if !strings.Contains(text, want) {
			t.Errorf("inspect says nothing of %s: %s", want, text)
		}
	}
	c.Delete()
	reapSupervisors(t)
}

// A supervisor that is killed leaves refused calls refused: nothing hangs, and nothing is let
// through.
func TestSupervisorKilled(t *testing.T) {
	b := harness.New(t)
	refused, allowed := fmt.Sprintf("syscall=%d,8", unix.SYS_PERSONALITY), fmt.Sprintf("syscall=%d,4294967295", unix.SYS_PERSONALITY)
	c := b.Container("sh", "-c", "read go < /go; exec /inside try "+refused+" "+allowed)
	profileOf(c)
	c.Spec.Annotations = map[string]string{denialsAnnotation: "true"}
	if err := unix.Mkfifo(c.Path("go"), 0o666); err != nil {
		t.Fatal(err)
	}
	out, w := b.Pipe()
	c.Stdout = w
	c.Create().Start()
	w.Close()
	pids := supervisors(t, c.ID)
	for _, pid := range pids {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	reapSupervisors(t)
	if err := os.WriteFile(c.Path("go"), []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	got := harness.ParseAttempts(t, out.All())
	harness.Refused(t, got, refused, "ENOSYS")
	harness.Allowed(t, got, allowed)
	c.WaitExit()
	c.Delete()
}

// settled lays a file of settings over the host's, for this test's calls.
func settled(t *testing.T, b *harness.Box, text string) {
	t.Helper()
	if err := os.MkdirAll(b.Path("etc/berth"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.WriteFile("etc/berth/berth.toml", text, 0o644)
	// In a mount namespace, and so of no other test's.
	wrap := []string{"unshare", "-m", "sh", "-c", "mount -t overlay -o lowerdir=" + b.Path("etc") + ":/etc overlay /etc && exec \"$@\"", "sh"}
	if out, err := exec.Command(wrap[0], append(wrap[1:], "true")...).CombinedOutput(); err != nil {
		harness.Skip(t, "cannot lay a directory over /etc: %v: %s", err, out)
	}
	b.Wrap = append(b.Wrap, wrap...)
}

// A container is recorded into the directory that the host's settings name, with its added
// processes, and another runs under the result.
func TestSupervisorLearns(t *testing.T) {
	b := harness.New(t)
	dir := b.Path("learned")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	settled(t, b, fmt.Sprintf("seccomp-learn-directory = %q\n", dir))
	c := b.Container("sh", "-c", "mkdir /tmp/made && rmdir /tmp/made && echo made && read go < /go")
	c.Spec.Annotations = map[string]string{learnAnnotation: "true"}
	if err := unix.Mkfifo(c.Path("go"), 0o666); err != nil {
		t.Fatal(err)
	}
	c.Create().Start()
	c.Exec(nil, "ln", "-s", "x", "/tmp/link").OK(t)
	if err := os.WriteFile(c.Path("go"), []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	if status := c.WaitExit(); status.ExitStatus() != 0 {
		t.Errorf("it ended with %d", status.ExitStatus())
	}
	c.Delete()
	p := learned(t, b, filepath.Join("learned", c.ID+".json"))
	for name, want := range map[string]bool{"mkdir": true, "rmdir": true, "symlink": true, "execve": true, "mount": false, "unshare": false} {
		n, _ := p.rules(name)
		if at, _ := p.rules(name + "at"); n+at > 0 != want {
			t.Errorf("%s is allowed %d times, want %v", name, n, want)
		}
	}
	reapSupervisors(t)
	under := b.Container("sh", "-c", "mkdir /tmp/made && rmdir /tmp/made; ln /bin/sh /tmp/hard || echo refused")
	under.Spec.Linux.Seccomp = new(specs.LinuxSeccomp)
	harness.Decode(t, readFile(t, filepath.Join(dir, c.ID+".json")), under.Spec.Linux.Seccomp)
	if r := under.Run().OK(t); r.Stdout != "refused\n" {
		t.Errorf("under what was learned: %q, %q", r.Stdout, r.Stderr)
	}
}

// Who writes a config.json chooses no path of the host's, and no operator is surprised.
func TestSupervisorLearnsNowhereElse(t *testing.T) {
	b := harness.New(t)
	c := b.Container("true")
	c.Spec.Annotations = map[string]string{learnAnnotation: "true"}
	settled(t, b, "")
	if r := c.Run().OK(t); !strings.Contains(r.Stderr, "name no directory") {
		t.Errorf("%q", r.Stderr)
	}
	dir := b.Path("learned")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	b.WriteFile("etc/berth/berth.toml", fmt.Sprintf("seccomp-learn-directory = %q\n", dir), 0o644)
	c.TryCreate().Fails(t, dir, "others can write to it")
	c.Spec.Annotations[learnAnnotation] = "/etc"
	c.TryCreate().Fails(t, "/annotations/"+learnAnnotation, "neither true nor false")
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
}
