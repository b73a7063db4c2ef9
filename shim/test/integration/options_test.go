package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	runcoptions "github.com/containerd/containerd/api/types/runc/options"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/test/containerd"
)

// says runs a script in a container with some options, and gives what it wrote.
func (d *daemon) says(o *runcoptions.Options, script string, changes ...change) string {
	d.T.Helper()
	b := d.defineWith(o, append([]change{sh(script)}, changes...)...)
	s := d.pipes(b.id, false)
	if err := b.create(s); err != nil {
		d.T.Fatal(err)
	}
	if err := b.start(); err != nil {
		d.T.Fatal(err)
	}
	if got := b.wait(""); got != 0 {
		d.T.Errorf("%s: status %d: %s", script, got, s.output[1])
	}
	b.remove()
	return s.output[0].wait()
}

// recorded makes a program that is another engine, and notes what it is called
// with, a line for each call.
func (d *daemon) recorded(engine string) (wrapper string, calls func() string) {
	d.T.Helper()
	path, notes := lookFor(d.T, engine), filepath.Join(d.Dir, engine+"-calls")
	wrapper = filepath.Join(d.Dir, engine+"-recorded")
	script := "#!/bin/sh\necho \"$*\" >> " + notes + "\nexec " + path + " \"$@\"\n"
	if err := os.WriteFile(wrapper, []byte(script), 0o755); err != nil {
		d.T.Fatal(err)
	}
	return wrapper, func() string {
		text, _ := os.ReadFile(notes)
		return string(text)
	}
}

// Each of runc's options does what it says, seen from inside of a container or
// by what it leaves on the host.
func TestOptionsOfRuncsShim(t *testing.T) {
	withReleases(t, func(t *testing.T, d *daemon) {
		t.Run("IoUid and IoGid", func(t *testing.T) {
			o := d.options("")
			o.IoUid, o.IoGid = 1234, 4321
			// Who is not root can open its own output anew only if that is its own.
			script := "stat -L -c %u:%g /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2; echo again > /proc/self/fd/1"
			got := d.says(o, script, func(s *specs.Spec) { s.Process.User = specs.User{UID: 1234, GID: 4321} })
			if got != "1234:4321\n1234:4321\n1234:4321\nagain\n" {
				t.Errorf("inside: %q", got)
			}
		})
		t.Run("NoNewKeyring", func(t *testing.T) {
			if _, err := os.Stat("/proc/keys"); err != nil {
				t.Skip("the kernel has no keyrings")
			}
			for _, without := range []bool{false, true} {
				o := d.options("")
				o.NoNewKeyring = without
				id := ""
				got := d.says(o, "cat /proc/keys", func(s *specs.Spec) { id = filepath.Base(s.Linux.CgroupsPath) })
				if strings.Contains(got, " _ses."+id+":") == without {
					t.Errorf("NoNewKeyring %t: %s", without, got)
				}
			}
		})
		t.Run("NoPivotRoot", func(t *testing.T) {
			o := d.options("")
			o.NoPivotRoot = true
			b := d.defineWith(o)
			if err := b.create(stdio{}); err != nil {
				t.Fatal(err)
			}
			// Inside there is nothing to be seen of it, so the engine's own note is looked at.
			state, err := os.ReadFile(filepath.Join(d.Dir, "engine", containerd.Namespace, b.id, "state.json"))
			if err != nil || !strings.Contains(string(state), `"noPivot":true`) {
				t.Errorf("the engine's state: %v, %s", err, state)
			}
			b.remove()
			if got := d.says(o, "ls /"); got != "bin\ndev\netc\nproc\nsys\ntmp\n" {
				t.Errorf("inside: %q", got)
			}
		})
		t.Run("Root", func(t *testing.T) {
			o := d.options("")
			o.Root = filepath.Join(d.Dir, "another")
			b := d.defineWith(o)
			if err := b.create(stdio{}); err != nil {
				t.Fatal(err)
			}
			folder := filepath.Join(o.Root, containerd.Namespace, b.id)
			if _, err := os.Stat(folder); err != nil {
				t.Error(err)
			}
			b.remove()
			if _, err := os.Stat(folder); err == nil {
				t.Errorf("left: %s", folder)
			}
		})
		t.Run("TaskApiAddress", func(t *testing.T) {
			o := d.options("")
			//lint:ignore SA1019 clients may set it still, and it must have no effect
			o.TaskApiAddress = "unix:///nowhere"
			if got := d.says(o, "echo runs"); got != "runs\n" {
				t.Errorf("inside: %q", got)
			}
		})
		for _, engine := range []string{"runc", "crun"} {
			t.Run("BinaryName "+engine, func(t *testing.T) {
				o := d.options("")
				var calls func() string
				o.BinaryName, calls = d.recorded(engine)
				o.NoNewKeyring, o.NoPivotRoot = true, true
				b := d.defineWith(o)
				b.create(stdio{}) // crun refuses some hosts; that it is called is what is looked for
				b.remove()
				first, _, _ := strings.Cut(calls(), "\n")
				for _, words := range []string{"--root " + o.Root + "/" + containerd.Namespace, " create ", "--no-pivot", "--no-new-keyring", " " + b.id} {
					if !strings.Contains(first+" ", words) {
						t.Errorf("%s is called as %q, without %q", engine, first, words)
					}
				}
			})
		}
		t.Run("CriuWorkPath", func(t *testing.T) {
			lookFor(t, "criu")
			o := d.options("")
			o.CriuWorkPath = filepath.Join(d.Dir, "criu-work")
			b := d.defineWith(o)
			if err := b.create(stdio{}); err != nil {
				t.Fatal(err)
			}
			if err := b.start(); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(d.Context(), patience)
			defer cancel()
			// Whether criu can do it depends on the kernel; its log is there in either case.
			_, err := d.tasks().Checkpoint(ctx, &tasks.CheckpointTaskRequest{ContainerID: b.id})
			if _, missing := os.Stat(filepath.Join(o.CriuWorkPath, "dump.log")); missing != nil {
				t.Errorf("%v; the checkpoint said: %v", missing, err)
			}
			b.remove()
		})
	})
}

// The shim itself is put into a cgroup that is there, and starts in no other.
func TestShimCgroup(t *testing.T) {
	withReleases(t, func(t *testing.T, d *daemon) {
		name, dir := d.Cgroup+"-shim", "" // in one hierarchy, whichever
		for _, top := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/freezer"} {
			if _, err := os.Stat(top + "/cgroup.procs"); err == nil {
				dir = top + name
				break
			}
		}
		if dir == "" {
			t.Skip("there is no cgroup file system that this test knows in /sys/fs/cgroup")
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Skipf("no cgroup can be made: %v", err)
		}
		defer func() {
			wait.Until(t, "the shim's cgroup is empty", func() bool { return os.Remove(dir) == nil })
		}()
		o := d.options("")
		o.ShimCgroup = name
		b := d.defineWith(o)
		if err := b.create(stdio{}); err != nil {
			t.Fatal(err)
		}
		defer b.remove()
		procs, err := os.ReadFile(dir + "/cgroup.procs")
		if shims := d.Shims(); err != nil || len(shims) != 1 || !strings.Contains("\n"+string(procs), fmt.Sprintf("\n%d\n", shims[0])) {
			t.Errorf("shims %d, and in the cgroup %q, %v", shims, procs, err)
		}
		if strings.Contains("\n"+string(procs), fmt.Sprintf("\n%d\n", b.pid)) {
			t.Error("the container is in the shim's cgroup")
		}
		o.ShimCgroup = d.Cgroup + "-none"
		bad := d.defineWith(o)
		if err := bad.create(stdio{}); err == nil || !strings.Contains(err.Error(), "ShimCgroup") {
			t.Errorf("a cgroup that is not there: %v", err)
		}
		bad.undefine()
	})
}

// With SystemdCgroup a container is a unit of systemd's.
func TestSystemdCgroup(t *testing.T) {
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		t.Skip("systemd does not run here")
	}
	withReleases(t, func(t *testing.T, d *daemon) {
		o := d.options("")
		o.SystemdCgroup = true
		unit := ""
		b := d.defineWith(o, func(s *specs.Spec) {
			name := strings.TrimPrefix(d.Cgroup, "/")
			id := filepath.Base(s.Linux.CgroupsPath)
			unit = name + "-" + id + ".scope"
			s.Linux.CgroupsPath = "system.slice:" + name + ":" + id
		})
		if err := b.create(stdio{}); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", b.pid))
		if err != nil || !strings.Contains(string(text), "/system.slice/"+unit+"\n") {
			t.Errorf("cgroups: %v, %s", err, text)
		}
		b.remove()
		left, _ := filepath.Glob("/sys/fs/cgroup/*/system.slice/" + unit)
		unified, _ := filepath.Glob("/sys/fs/cgroup/system.slice/" + unit)
		left = append(left, unified...)
		if len(left) != 0 {
			t.Errorf("left: %q", left)
		}
	})
}
