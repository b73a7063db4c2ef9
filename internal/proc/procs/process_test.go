package procs

import (
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	const rest = " S 12 7 7 34817 9 4194304 1 2 3 4 150 25 6 7 20 0 1 0 4200 1000 5 18446744073709551615 1"
	s, err := ParseStat([]byte("345 (a) b (c\n)" + rest))
	want := &Stat{PID: 345, Parent: 12, Name: "a) b (c\n", State: 'S', Terminal: 34817, Flags: 4194304, User: 150, System: 25, Start: 4200, Resident: 5}
	if err != nil || !reflect.DeepEqual(s, want) {
		t.Errorf("%+v, %v; want %+v", s, err, want)
	}
	for _, bad := range []string{"", "1", "1 (", "1 )(", "x (a)" + rest, "1 (a) S 1 2", "1 (a) SS" + rest[2:], strings.Replace("1 (a)"+rest, " 12 ", " -12 ", 1), strings.Replace("1 (a)"+rest, "4200", "9999999999999999999", 1)} {
		if s, err := ParseStat([]byte(bad)); err == nil {
			t.Errorf("%q was read as %+v", bad, s)
		}
	}
}

func TestReadStat(t *testing.T) {
	s, err := ReadStat(os.Getpid())
	if err != nil || s.PID != os.Getpid() || s.Parent != os.Getppid() || s.Start == 0 || s.Resident == 0 {
		t.Errorf("of ourselves: %+v, %v", s, err)
	}
	if s, err := ReadStat(1 << 30); !errors.Is(err, ErrGone) { // beyond the largest pid_max
		t.Errorf("of no process: %+v, %v", s, err)
	}
}

func TestParseUID(t *testing.T) {
	if id, err := parseUID([]byte("Name:\tUid: 3\nUmask:\t0022\nUid:\t1\t4294967294\t3\t4\nGid:\t9\t9\t9\t9\n")); id != math.MaxUint32-1 || err != nil {
		t.Errorf("%d, %v", id, err)
	}
	for _, bad := range []string{"", "Gid:\t1\t2\t3\t4\n", "Uid:\t1\t2\t3\n", "Uid:\t1\tx\t3\t4\n", "Uid:\t1\t4294967296\t3\t4\n"} {
		if id, err := parseUID([]byte(bad)); err == nil {
			t.Errorf("%q was read as %d", bad, id)
		}
	}
}

func TestRead(t *testing.T) {
	before := time.Now()
	cmd := exec.Command("sh", "-c", "echo; read x", "", strings.Repeat("x", 100_000))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// Start comes back in the midst of the execve, which has no arguments to show yet.
	if _, err := io.ReadFull(stdout, make([]byte, 1)); err != nil {
		t.Error(err)
	}
	p, err := Read(cmd.Process.Pid)
	stdin.Close()
	_ = cmd.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if p.PID != cmd.Process.Pid || p.Parent != os.Getpid() || p.UID != uint32(os.Geteuid()) || p.Name != "sh" || !reflect.DeepEqual(p.Args, cmd.Args) {
		t.Errorf("%+v", p)
	}
	// The kernel counts from boot in hundredths of a second.
	if p.Started.Before(before.Add(-20*time.Millisecond)) || p.Started.After(time.Now()) {
		t.Errorf("started %v, want after %v", p.Started, before)
	}
	if p, err := Read(cmd.Process.Pid); !errors.Is(err, ErrGone) {
		t.Errorf("of one that is gone: %+v, %v", p, err)
	}
	if kernels, err := Read(2); err == nil && kernels.Name == "kthreadd" && len(kernels.Args) > 0 {
		t.Errorf("a process of the kernel's has arguments: %q", kernels.Args)
	}
	self, err := Read(os.Getpid())
	if err != nil || len(self.Args) != len(os.Args) {
		t.Errorf("%+v, %v", self, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("345 (a) b) S 12 7 7 34817 9 4194304 1 2 3 4 150 25 6 7 20 0 1 0 4200 1000 5"))
	f.Add([]byte("Uid:\t1\t2\t3\t4\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if s, err := ParseStat(text); err == nil && (s.Parent < 0 || span(s.User) < 0 || span(s.Start) < 0) {
			t.Errorf("%q was read as %+v", text, s)
		}
		_, _ = parseUID(text)
	})
}
