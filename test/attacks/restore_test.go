package attacks

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// A container that is in no further groups when it is written down is in none when it is brought
// back, whatever groups the caller of restore is in.
func TestRestoreKeepsNoGroups(t *testing.T) {
	criu := harness.NeedCriu(t)
	b := harness.New(t)
	b.Globals = append(b.Globals, "--criu", criu)
	c := b.Container("/bin/sleep", "100000")
	c.Spec.Root.Readonly = true // on an image that others use too, nothing may have changed since
	c.RunDetached()
	images := b.Path("images")
	c.Command("checkpoint", []string{"--image-path", images}).Run().OK(t)
	c.WaitExit()
	pidFile := b.Path("restored.pid")
	restore := c.Command("restore", []string{"--detach", "--image-path", images, "--pid-file", pidFile})
	restore.Attr = &syscall.SysProcAttr{Credential: &syscall.Credential{Groups: []uint32{0, 4, 27}}}
	restore.Run().OK(t)
	pid, err := os.ReadFile(pidFile)
	check(t, err)
	c.PID, err = strconv.Atoi(string(pid))
	check(t, err)
	status, err := os.ReadFile("/proc/" + string(pid) + "/status")
	check(t, err)
	_, groups, _ := strings.Cut(string(status), "\nGroups:")
	groups, _, _ = strings.Cut(groups, "\n")
	if strings.TrimSpace(groups) != "" {
		t.Errorf("the restored process is in groups %s of the caller's", groups)
	}
	c.Delete("--force")
	c.WaitExit()
	harness.Report(t, "attacks", 1)
}

// A restore that fails leaves no cgroup, however late the half-restored process comes to its end.
func TestFailedRestoreLeavesNothing(t *testing.T) {
	criu := harness.NeedCriu(t)
	b := harness.New(t)
	b.Globals = append(b.Globals, "--criu", criu)
	c := b.Container("/bin/sleep", "100000")
	c.Spec.Root.Readonly = true
	c.RunDetached()
	images := b.Path("images")
	c.Command("checkpoint", []string{"--image-path", images}).Run().OK(t)
	c.WaitExit()
	check(t, os.Rename(c.Path("/bin/busybox"), c.Path("/bin/another"))) // as a neighbour with the same root may
	for range 20 {
		r := c.Command("restore", []string{"--detach", "--image-path", images}).Run()
		r.FailsWith(t, 1, "criu could not restore", "bin/busybox")
		for _, h := range harness.Hierarchies(t) {
			if dir := filepath.Join(h.Dir, c.Spec.Linux.CgroupsPath); exists(dir) {
				t.Fatalf("cgroup %s is left: %s", dir, r.Stderr)
			}
		}
	}
	b.ReapOrphans() // what criu had begun comes to this process, as it would to process 1
	harness.Report(t, "attacks", 20)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
