package enforce

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-runtime/berth/node/config"
	"github.com/berth-runtime/berth/node/enforce/record"
	"github.com/berth-runtime/berth/node/machine"
)

// killed is what a process of its own does in TestKilledUnderSystemd: it applies or
// undoes with a state directory, and kills itself at the nth point (kill -9). It prints
// how many points it came by.
func killed(argument string) error {
	words := strings.Fields(argument) // apply|undo, n, state, lasting
	killAt, err := strconv.Atoi(words[1])
	if err != nil {
		return err
	}
	m, err := machine.Open()
	if err != nil {
		return err
	}
	r, err := record.Open(words[2], m.BootID())
	if err != nil {
		return err
	}
	defer r.Close()
	points := 0
	e := &Engine{Machine: m, Record: r, at: func(string) {
		if points++; points == killAt {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	}}
	ctx := context.Background()
	if words[0] == "undo" {
		err = e.Undo(ctx)
	} else {
		c, err2 := config.Parse("node.yaml", guestConfig, []config.Override{{Key: "state-dir", Value: words[2]}, {Key: "properties", Value: words[3]}})
		if err2 != nil {
			return err2
		}
		p, err2 := m.Prepare(ctx, c)
		if err2 != nil {
			return err2
		}
		err = e.Apply(ctx, p)
	}
	fmt.Println(points)
	return err
}

const guestConfig = `
system-reserved: {cpu: 500m, memory: 512Mi}
kube-reserved: {cpu: 250m, memory: 256Mi}
system-reserved-enforce: true
kube-reserved-enforce: cpu
pods-enforce: true
kernel-parameters: set
`

// A kill -9 at each point of Apply and of Undo, of a process with the real systemd, is
// made good by the next Undo, and by the next Apply.
func TestKilledUnderSystemd(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("changing slices takes root")
	}
	if st, err := os.Lstat("/run/systemd/system"); err != nil || !st.IsDir() {
		t.Skip("systemd is not the init system here")
	}
	if cpu, err := os.ReadFile("/proc/cpuinfo"); err != nil || !strings.Contains(string(cpu), "User Mode Linux") {
		t.Skip("this changes the whole machine, and is for guests only: test/guests/test -- ./node/enforce")
	}
	for _, lasting := range []string{"runtime", "persistent"} {
		t.Run(lasting, func(t *testing.T) { killedUnderSystemd(t, lasting) })
		if testing.Short() {
			break
		}
	}
}

func killedUnderSystemd(t *testing.T, lasting string) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	state := t.TempDir()
	// do runs one that is killed at a point; 0 for none.
	do := func(what string, killAt int) (points int) {
		t.Helper()
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), fmt.Sprintf("BERTH_NODE_TEST_USE=killed=%s %d %s %s", what, killAt, state, lasting))
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		var exit *exec.ExitError
		if killAt > 0 {
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("%s, to be killed at %d: %v %s", what, killAt, err, out)
			}
			return killAt
		}
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		points, _ = strconv.Atoi(strings.TrimSpace(string(out)))
		return points
	}
	before := systemdNow(t)
	t.Cleanup(func() { do("undo", 0) })
	applying := do("apply", 0)
	during := systemdNow(t)
	undoing := do("undo", 0)
	same(t, "undo", before, systemdNow(t))
	if applying < 20 || undoing < 15 || during == before {
		t.Fatalf("%d and %d points, and this was done:\n%s", applying, undoing, diff(before, during))
	}
	for n := 1; n <= applying; n++ {
		do("apply", n)
		if n%2 == 0 {
			do("apply", 0)
			same(t, fmt.Sprintf("apply after a kill at %d of %d", n, applying), during, systemdNow(t))
		}
		do("undo", 0)
		same(t, fmt.Sprintf("undo after a kill at %d of %d", n, applying), before, systemdNow(t))
	}
	for n := 1; n <= undoing; n++ {
		do("apply", 0)
		do("undo", n)
		do("undo", 0)
		same(t, fmt.Sprintf("undo after one that was killed at %d of %d", n, undoing), before, systemdNow(t))
	}
	t.Logf("killed at each of %d points of apply and %d of undo", applying, undoing)
}

// systemdNow is all that an Apply changes there: what systemd thinks, what the kernel
// has, and the drop-ins.
func systemdNow(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	slices := []string{"system.slice", "kubernetes.slice", "machine.slice"}
	out, err := exec.Command("systemctl", append([]string{"show", "-p", "Id,ActiveState,CPUWeight,MemoryMax,MemoryHigh,TasksMax"}, slices...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	id := ""
	for line := range strings.Lines(string(out)) {
		if name, ok := strings.CutPrefix(line, "Id="); ok {
			id = strings.TrimSpace(name)
		}
		b.WriteString(id + " " + line)
	}
	for _, slice := range slices {
		for _, file := range []string{"cpu.weight", "cpu.shares", "memory.max", "memory.high", "memory.limit_in_bytes", "pids.max"} {
			controller, _, _ := strings.Cut(file, ".")
			for _, dir := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/" + controller + "/"} {
				if text, err := os.ReadFile(dir + slice + "/" + file); err == nil {
					fmt.Fprintf(&b, "%s %s\n", dir+slice+"/"+file, strings.TrimSpace(string(text)))
				}
			}
		}
	}
	for _, dir := range []string{"/run/systemd/system.control", "/etc/systemd/system.control"} {
		_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err == nil {
				b.WriteString(path + "\n")
			}
			return nil
		})
	}
	for _, name := range []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops"} {
		text, err := os.ReadFile("/proc/sys/" + name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s", name, text)
	}
	return b.String()
}
