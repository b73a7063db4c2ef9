package device

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-runtime/berth/cgroup/internal/testgroup"
	"github.com/berth-runtime/berth/internal/sys"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// opens runs a process in the cgroup that opens a device for reading, and says
// whether it could.
func opens(t *testing.T, procs, path string) bool {
	t.Helper()
	script := `echo $$ > "$1" || exit 3; exec < "$2" || exit 4`
	out, err := exec.Command("/bin/sh", "-c", script, "sh", procs, path).CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return true
	case errors.As(err, &exit) && strings.Contains(strings.ToLower(string(out)), "not permitted"):
		return false
	}
	t.Fatalf("%v: %s", err, out)
	return false
}

func char(allow bool, major, minor int64) specs.LinuxDeviceCgroup {
	return specs.LinuxDeviceCgroup{Allow: allow, Type: "c", Major: &major, Minor: &minor, Access: "rwm"}
}

func foldRules(t *testing.T, rules ...specs.LinuxDeviceCgroup) Policy {
	t.Helper()
	p, err := Fold(rules)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAttach(t *testing.T) {
	dir := testgroup.Make(t, testgroup.Mount(t, "cgroup2", ""))
	fd, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	procs := filepath.Join(dir, "cgroup.procs")
	if !opens(t, procs, "/dev/zero") {
		t.Skip("devices are denied here before the test begins")
	}

	// The shell writes to cgroup.procs and reads /dev/zero; a wildcard with
	// a hole is what v1 could not say.
	err = foldRules(t, char(true, 1, -1), char(false, 1, 5)).Attach(fd)
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSYS) {
		t.Skipf("no BPF program can be attached here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if opens(t, procs, "/dev/zero") {
		t.Error("/dev/zero is open in spite of the filter")
	}
	if !opens(t, procs, "/dev/null") {
		t.Error("/dev/null is denied in spite of the filter")
	}

	// The second one takes the place of the first.
	if err := foldRules(t, char(true, 1, 5)).Attach(fd); err != nil {
		t.Fatal(err)
	}
	if !opens(t, procs, "/dev/zero") || opens(t, procs, "/dev/null") {
		t.Error("the filter was not replaced")
	}
	ours, err := attached(fd)
	closeAll(ours)
	if err != nil || len(ours) != 1 {
		t.Errorf("%d filters are attached (%v), want 1", len(ours), err)
	}
	if err := Detach(fd); err != nil {
		t.Fatal(err)
	}
	if !opens(t, procs, "/dev/null") {
		t.Error("the filter was not detached")
	}
}

// TestV1OnKernel lets a real kernel judge the lines.
func TestV1OnKernel(t *testing.T) {
	dir := testgroup.Make(t, testgroup.Mount(t, "cgroup", "devices"))
	write := func(lines []Line, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range lines {
			if err := os.WriteFile(filepath.Join(dir, l.File()), []byte(l.Text), 0); err != nil {
				t.Fatalf("%+v: %v", l, err)
			}
		}
	}
	procs := filepath.Join(dir, "cgroup.procs")
	write(foldRules(t, char(true, 1, 3), char(true, 5, -1)).V1())
	if opens(t, procs, "/dev/zero") || !opens(t, procs, "/dev/null") {
		t.Error("the lines do not take")
	}
	list, err := os.ReadFile(filepath.Join(dir, "devices.list"))
	if err != nil {
		t.Fatal(err)
	}
	write(foldRules(t, char(true, 1, 5)).UpdateV1(string(list)))
	if !opens(t, procs, "/dev/zero") || opens(t, procs, "/dev/null") {
		t.Error("the update does not take")
	}
	list, err = os.ReadFile(filepath.Join(dir, "devices.list"))
	if err != nil || string(list) != "c 1:5 rwm\n" {
		t.Errorf("devices.list is %q (%v)", list, err)
	}
	write(foldRules(t, specs.LinuxDeviceCgroup{Allow: true}, char(false, 1, 5)).V1())
	if opens(t, procs, "/dev/zero") || !opens(t, procs, "/dev/null") {
		t.Error("a default of allow does not take")
	}
}

// TestVerifier lets the kernel's verifier judge programs of random rules.
func TestVerifier(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for i := range 60 {
		rules := randomRules(r, r.IntN(9))
		if i == 0 {
			rules = randomRules(r, 400)
			for i := range rules {
				rules[i].Major, rules[i].Minor = int64(i), int64(i)<<12
			}
		}
		program, err := sys.LoadCgroupDevice("berth_test", fold(rules).Program())
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
			t.Skipf("no BPF program can be loaded here: %v", err)
		}
		if err != nil {
			t.Fatalf("%v: %v", rules, err)
		}
		program.Close()
	}
}
