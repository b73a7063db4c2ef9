package packages

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// In a guest the package is installed in earnest, the node's daemon enabled and started, and all of
// it purged: the whole system is as it was, file by file, with the same units, cgroups and
// processes. (What users there are is in files.) test/guests/test brings the package along.
func TestPurgedPackageLeavesNothingInGuest(t *testing.T) {
	deb := os.Getenv("BERTH_DEB")
	if deb == "" || os.Getenv("BERTH_GUEST") == "" {
		t.Skip("needs a guest with the package in BERTH_DEB: make test-packages")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	system := func() map[string]string {
		now := map[string]string{}
		addFiles(t, now)
		addCgroups(t, now)
		addProcesses(t, now)
		for _, list := range []string{"list-unit-files", "list-units --all"} {
			args := append(strings.Fields(list), "--no-legend", "--plain", "--no-pager")
			for line := range strings.Lines(run(t, "systemctl", args...)) {
				name, state, _ := strings.Cut(line, " ")
				now["systemctl "+list+": "+name] = strings.Join(strings.Fields(state), " ")
			}
		}
		return now
	}
	before := system()
	if len(before) < 3000 {
		t.Fatalf("only %d files, units, cgroups and processes in all", len(before))
	}
	cmd := exec.Command("bash", "-c", use, "use", deb)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "hello from the package\n") || strings.Contains(string(out), "left:") {
		t.Fatalf("%v\n%s", err, out)
	}
	after := system()
	t.Logf("%d files, units, cgroups and processes before, %d after", len(before), len(after))
	for name, now := range after {
		if was, there := before[name]; !there {
			t.Errorf("left behind: %s: %s", name, now)
		} else if was != now {
			t.Errorf("changed: %s: %s, and before %s", name, now, was)
		}
	}
	for name, was := range before {
		if _, there := after[name]; !there {
			t.Errorf("removed: %s: %s", name, was)
		}
	}
}

// addFiles adds all that is on the disk and in /run, with what would tell of a change.
func addFiles(t *testing.T, to map[string]string) {
	t.Helper()
	own := append([]string{work, "/run/guest"}, strings.Fields(ignoredOfSystemd)...)
	for _, top := range []string{"/", "/run"} {
		var of unix.Stat_t
		if err := unix.Lstat(top, &of); err != nil {
			t.Fatal(err)
		}
		err := filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
			var st unix.Stat_t
			if err == nil {
				err = unix.Lstat(path, &st)
			}
			if os.IsNotExist(err) {
				return nil // it has gone meanwhile
			}
			if err != nil {
				return err
			}
			switch notOurs := st.Dev != of.Dev || slices.Contains(own, path); { // /proc, /sys, the host's directories are on other devices
			case notOurs && e.IsDir():
				return fs.SkipDir
			case notOurs || ofDpkg(path):
				return nil
			}
			to[path] = fmt.Sprintf("mode %o, owner %d:%d", st.Mode, st.Uid, st.Gid)
			if !e.IsDir() { // whose time changes with what comes and goes in it
				to[path] += fmt.Sprintf(", %d bytes, changed %d.%09d", st.Size, st.Ctim.Sec, st.Ctim.Nsec)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// ignoredOfSystemd is what systemd and its journal write all the time, and anew at each reload.
const ignoredOfSystemd = "/run/log /run/systemd/journal /var/lib/systemd /run/systemd/generator /run/systemd/generator.late /run/systemd/systemd-units-load"

// addCgroups adds all but the one that the calls of this test are in: the service that a guest runs
// its commands in is delegated, so the first container below it moves them into supervisor/.
func addCgroups(t *testing.T, to map[string]string) {
	t.Helper()
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	unified := "/sys/fs/cgroup" + strings.TrimPrefix(strings.TrimSpace(string(own)), "0::")
	err = filepath.WalkDir("/sys/fs/cgroup", func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && !(path == unified && filepath.Base(path) == "supervisor") {
			to[path] = "cgroup"
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// addProcesses adds the programs that run, by their command lines: how many have the same one is no
// matter. Workers of udev are left out: they come with a device's event, and go when there has been
// none for some seconds.
func addProcesses(t *testing.T, to map[string]string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range lines {
		if line, err := os.ReadFile(file); err == nil && len(line) > 0 && !strings.HasPrefix(string(line), "(udev-worker)") {
			to["process "+strings.ReplaceAll(string(line), "\x00", " ")] = "runs"
		}
	}
}
