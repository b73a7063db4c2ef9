package main

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/berth-runtime/berth/internal/proc/procs"
)

func TestPSColumns(t *testing.T) {
	zone := time.FixedZone("there", 3*3600)
	now := time.Date(2026, 3, 2, 1, 30, 0, 0, zone)
	const passwd = "root:x:0:0::/:/bin/sh\nsystemd-network:x:998:998::/:/bin/sh\neightlet:x:7:7::/:/bin/sh\n"
	for _, c := range []struct{ have, want string }{
		{psUser(0, passwd), "root"}, {psUser(998, passwd), "systemd+"}, {psUser(7, passwd), "eightlet"}, {psUser(4294967294, passwd), "4294967294"}, {psUser(0, ""), "0"},
		{psStarted(now.Add(-time.Hour), now), "00:30"}, {psStarted(now.Add(-2*time.Hour), now), "Mar01"}, {psStarted(now.AddDate(-1, 0, 0), now), "2025"},
		{psStarted(now.Add(-time.Hour).UTC(), now), "00:30"},
		{psTerminal(0), "?"}, {psTerminal(136 << 8), "pts/0"}, {psTerminal(137<<8 | 5), "pts/261"}, {psTerminal(136<<8 | 0x2c | 1<<20), "pts/300"},
		{psTerminal(4<<8 | 1), "tty1"}, {psTerminal(4<<8 | 65), "ttyS1"}, {psTerminal(5<<8 | 1), "console"}, {psTerminal(204<<8 | 64), "204:64"},
		{psTime(0), "00:00:00"}, {psTime(3*time.Hour + 25*time.Minute + 45*time.Second + 999*time.Millisecond), "03:25:45"}, {psTime(49*time.Hour + time.Second), "2-01:00:01"},
		{psCommand(&procs.Process{Args: []string{"a", "", "b c"}}), "a  b c"}, {psCommand(&procs.Process{Name: "kthreadd", State: 'S'}), "[kthreadd]"},
		{psCommand(&procs.Process{Name: "gone", State: 'Z'}), "[gone] <defunct>"},
		{psCommand(&procs.Process{Args: []string{"x\x1b[2J\ny\u009bz\x7f\xff é"}}), "x?[2J?y?z?? é"},
	} {
		if c.have != c.want {
			t.Errorf("%q, want %q", c.have, c.want)
		}
	}
	for _, c := range []struct{ used, lived, want int64 }{{0, 0, 0}, {5, 0, 0}, {10, 20, 50}, {1, 3, 33}, {400, 100, 99}} {
		p := &procs.Process{CPU: time.Duration(c.used) * time.Second, Started: now.Add(-time.Duration(c.lived) * time.Second)}
		if have := psShare(p, now); have != c.want {
			t.Errorf("%d of %d seconds: %d, want %d", c.used, c.lived, have, c.want)
		}
	}
}

// Clients read these columns, so they are compared with ps(1) itself.
func TestOwnTableIsThatOfPS(t *testing.T) {
	if _, err := exec.LookPath("ps"); err != nil {
		t.Skip("no ps(1) to compare with: ", err)
	}
	pids := []int{1, os.Getpid()}
	list := []*procs.Process{}
	for _, pid := range pids {
		p, err := procs.Read(pid)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	theirs, err := exec.Command("ps", "-ww", "-f", "-q", strconv.Itoa(pids[0])+","+strconv.Itoa(pids[1])).Output()
	if err != nil {
		t.Skip("this ps knows no -q: ", err)
	}
	passwd, _ := os.ReadFile("/etc/passwd")
	var ours strings.Builder
	writePS(&ours, list, string(passwd), time.Now())
	have, want := strings.Split(ours.String(), "\n"), strings.Split(string(theirs), "\n")
	if len(have) != len(want) {
		t.Fatalf("%s\nand by ps:\n%s", ours.String(), theirs)
	}
	for i := range have {
		a, b := strings.Fields(have[i]), strings.Fields(want[i])
		if i > 0 && i <= len(list) && len(a) > 6 && len(b) > 6 {
			a[3], b[3], a[6], b[6] = "", "", "", "" // C and TIME go on
			// ps counts from the second of the boot, and may see another minute.
			began, now := list[i-1].Started, time.Now()
			if b[4] == psStarted(began.Add(-2*time.Second), now) || b[4] == psStarted(began.Add(2*time.Second), now) {
				a[4], b[4] = "", ""
			}
		}
		if strings.Join(a, " ") != strings.Join(b, " ") {
			t.Errorf("%s\nand by ps:\n%s", have[i], want[i])
		}
	}
}
