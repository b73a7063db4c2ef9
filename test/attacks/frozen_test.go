package attacks

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/test/harness"
)

// freezable gives the directory of a container's cgroup that version 2 freezes.
func freezable(t *testing.T, c *harness.Container) string {
	t.Helper()
	for _, h := range harness.Hierarchies(t) {
		dir := filepath.Join(h.Dir, c.Spec.Linux.CgroupsPath)
		if _, err := os.Stat(dir + "/cgroup.freeze"); h.Unified && err == nil {
			return dir
		}
	}
	harness.Skip(t, "the container has no cgroup that version 2 freezes")
	return ""
}

// The cgroup is frozen by the time that exec clones into it: the process stands still before its
// first instruction, and so does the thread that waits for it, which with GOMAXPROCS=1, as the shim
// has it, is all that there is. Who waits is told by a signal all the same.
func TestExecIntoAFrozenCgroupEndsWhenTold(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/sleep", "1000")
	c.RunDetached()
	group := freezable(t, c)
	// As the container itself may, where it may write to its cgroup.
	check(t, os.WriteFile(group+"/cgroup.freeze", []byte("1"), 0))
	cmd := c.Command("exec", []string{"--ignore-paused"}, "/bin/true")
	cmd.Env = append(cmd.Env, "GOMAXPROCS=1")
	r := inTime(t, "exec into a frozen cgroup", func() harness.Result {
		running := cmd.Start()
		for end := time.Now().Add(harness.Deadline); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if pids, _ := os.ReadFile(group + "/cgroup.procs"); strings.Count(string(pids), "\n") > 1 {
				break
			}
		}
		running.Signal(unix.SIGTERM)
		return running.Wait()
	})
	r.FailsWith(t, 255, "told to end", "frozen")
	check(t, os.WriteFile(group+"/cgroup.freeze", []byte("0"), 0))
	c.Exec(nil, "/bin/true").OK(t)
	c.Delete("--force")
	c.WaitExit()
	harness.Report(t, "attacks", 1)
}

// A payload freezes its cgroup when exec has looked at it, and before the clone. By what it may
// come to do so is in the shapes: it needs neither a capability nor a mount of the config's. The
// test freezes in its place, to do it at that step. With GOMAXPROCS=1, as the shim has it, all of
// Go stands still with a thread that has cloned into the frozen cgroup.
func TestPayloadFreezesItselfBeforeTheClone(t *testing.T) {
	confined := &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Syscalls: []specs.LinuxSyscall{
		{Names: []string{"mount", "fsmount"}, Action: specs.ActErrno}}}
	for name, change := range map[string]func(c *harness.Container){
		"user namespace of its own": func(*harness.Container) {},
		"CAP_SYS_ADMIN": func(c *harness.Container) {
			c.Spec.Linux.Seccomp = confined
			caps := c.Spec.Process.Capabilities
			caps.Bounding = append(slices.Clip(caps.Bounding), "CAP_SYS_ADMIN")
		},
		"bind mount through a link": func(c *harness.Container) {
			c.Spec.Linux.Seccomp = confined
			link := c.Box.Path("link")
			check(t, os.Symlink("/sys/fs", link))
			c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: "/mnt", Type: "bind", Source: link, Options: []string{"rbind", "rw"}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := harness.New(t)
			c := b.Container("/bin/sleep", "1000")
			change(c)
			c.RunDetached()
			group := freezable(t, c)
			defer func() { _ = os.WriteFile(group+"/cgroup.freeze", []byte("0"), 0) }()
			stops, err := harness.ListenStops(b.Path("steps"))
			check(t, err)
			defer stops.Close()
			cmd := c.Command("exec", nil, "/bin/true")
			cmd.Wrap = []string{harness.Fault(t), "-tell", b.Path("steps"), "--"}
			cmd.Env = append(cmd.Env, "GOMAXPROCS=1")
			r := inTime(t, "exec into a cgroup that is frozen meanwhile", func() harness.Result {
				running, told := cmd.Start(), make(chan struct{})
				frozen := false
				err := stops.Follow(func(s harness.Stop) {
					// When the init is loaded, the cgroup has been opened.
					if frozen || s.Name != "memfd_create" {
						return
					}
					frozen = true
					check(t, os.WriteFile(group+"/cgroup.freeze", []byte("1"), 0))
					go func() {
						defer close(told)
						wait.Until(t, "the added process is in the frozen cgroup", func() bool {
							pids, _ := os.ReadFile(group + "/cgroup.procs")
							return strings.Count(string(pids), "\n") > 1
						})
						_ = unix.Kill(s.PID, unix.SIGTERM)
					}()
				})
				check(t, err)
				if !frozen {
					t.Fatal("exec came to its end without a memfd")
				}
				<-told
				return running.Wait()
			})
			r.FailsWith(t, 255, "told to end", "frozen")
			check(t, os.WriteFile(group+"/cgroup.freeze", []byte("0"), 0))
			c.Exec(nil, "/bin/true").OK(t)
			c.Delete("--force")
			c.WaitExit()
			harness.Report(t, "attacks", 1)
		})
	}
}
