package seccomp

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

func TestShortProfiles(t *testing.T) {
	for _, c := range []struct {
		profile       *specs.LinuxSeccomp
		mount, getpid specs.LinuxSeccompAction
	}{
		{AllowAllBut("mount", "umount2"), specs.ActErrno, specs.ActAllow},
		{AllowOnly("getpid", "openat2"), specs.ActErrno, specs.ActAllow},
		{AllowAllBut(), specs.ActAllow, specs.ActAllow},
		{AllowOnly(), specs.ActErrno, specs.ActErrno},
	} {
		f, err := Compile(c.profile)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]specs.LinuxSeccompAction{"mount": c.mount, "getpid": c.getpid} {
			if action, errno, _ := f.Decide(name); action != want || action == specs.ActErrno && len(c.profile.Syscalls) > 0 && errno != uint16(unix.EPERM) {
				t.Errorf("%+v: %s is %s %d, want %s", c.profile, name, action, errno, want)
			}
		}
	}
	names := []string{"mount"}
	p := AllowAllBut(names...)
	names[0] = "read"
	if p.Syscalls[0].Names[0] != "mount" {
		t.Error("the profile has its caller's slice")
	}
}

// The program is filtered, and the process that started it is not.
func TestStart(t *testing.T) {
	f, err := Compile(AllowAllBut("mkdir", "mkdirat"))
	if err != nil {
		t.Fatal(err)
	}
	f.Flags |= FlagTSync // which would be for this process
	dir := t.TempDir()
	before := filters(t)
	least := slices.Min(slices.Collect(maps.Values(before)))
	for range 20 {
		cmd := exec.Command("sh", "-c", `mkdir "$0/made" && echo made; grep -E "^(NoNewPrivs|Seccomp):" /proc/self/status`, dir)
		var out, errors bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errors
		if err := f.Start(cmd); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatal(err, errors.String())
		}
		if want := "NoNewPrivs:\t1\nSeccomp:\t2\n"; out.String() != want || !strings.Contains(errors.String(), "not permitted") {
			t.Fatalf("it says %q and %q", out.String(), errors.String())
		}
		if err := os.Mkdir(dir+"/ours", 0o700); err != nil {
			t.Fatalf("this process is filtered: %v", err)
		}
		if err := os.Remove(dir + "/ours"); err != nil {
			t.Fatal(err)
		}
	}
	// Threads are what they were, and those that Go's runtime has made meanwhile are none of the
	// filtered one's children. (A test before this one may have left a filter on a thread.)
	for thread, got := range filters(t) {
		if want, old := before[thread]; old && got != want || !old && got != least {
			t.Errorf("%s has %s filters; before there were %v", thread, got, before)
		}
	}
}

// filters counts the filters of each thread.
func filters(t *testing.T) map[string]string {
	t.Helper()
	threads, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(threads) == 0 {
		t.Fatal(threads, err)
	}
	counts := map[string]string{}
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if err != nil {
			continue // it has ended
		}
		_, rest, found := strings.Cut(string(text), "\nSeccomp_filters:")
		if !found {
			t.Skip("the kernel doesn't count filters, which came with Linux 5.9")
		}
		line, _, _ := strings.Cut(rest, "\n")
		counts[thread] = strings.TrimSpace(line)
	}
	return counts
}

func TestStartRefuses(t *testing.T) {
	cmd := exec.Command("true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	f, err := Compile(AllowAllBut("mount"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Start(cmd); err == nil || !strings.Contains(err.Error(), "Pdeathsig") {
		t.Errorf("%v", err)
	}
	p := AllowAllBut("mount")
	p.Syscalls[0].Action = specs.ActNotify
	if f, err = Compile(p); err != nil {
		t.Fatal(err)
	}
	if err := f.Start(exec.Command("true")); err == nil || !strings.Contains(err.Error(), "SCMP_ACT_NOTIFY") {
		t.Errorf("%v", err)
	}
}
