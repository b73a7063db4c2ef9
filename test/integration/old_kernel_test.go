package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
	"github.com/berth-runtime/berth/test/inside/view"
)

// onOldKernel calls the engine as Linux 5.10 has it, in what newer kernels have added and this
// project uses with a way around it.
func onOldKernel(t *testing.T, cmd *harness.Command) *harness.Command {
	t.Helper()
	return onKernelWithout(t, "mount_setattr,close_range_cloexec", cmd)
}

func onKernelWithout(t *testing.T, features string, cmd *harness.Command) *harness.Command {
	t.Helper()
	cmd.Wrap = append([]string{harness.Helper(t), "without", features}, cmd.Wrap...)
	return cmd
}

// Where no memfd may be executed (vm.memfd_noexec=2, kept for each pid namespace) containers start
// all the same, and what they get to see of the engine is as closed to them.
func TestWithoutExecutableMemfds(t *testing.T) {
	if os.Geteuid() != 0 {
		harness.Skip(t, "the way around memfds takes the right to mount")
	}
	harness.NeedFile(t, "/proc/sys/vm/memfd_noexec", "vm.memfd_noexec (Linux 6.3)")
	b := harness.New(t)
	strict := func(cmd *harness.Command) *harness.Command {
		cmd.Wrap = append([]string{"unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", `echo 2 > /proc/sys/vm/memfd_noexec && exec "$@"`, "sh"}, cmd.Wrap...)
		return cmd
	}
	c := b.Container("/bin/echo", "it runs")
	if r := strict(c.Command("run", nil)).Run().OK(t); r.Stdout != "it runs\n" {
		t.Errorf("%q", r.Stdout)
	}
	if r := strict(b.Command("doctor")).Run(); !strings.Contains(r.Stdout, "openat2") || strings.Contains(r.Stdout, "memfd_noexec") {
		t.Errorf("nothing has to be done about it, and doctor says:\n%s", r.Stdout)
	}
	// A hook in the container can look at the init while it waits: it is no file of the host, and
	// can't be written to. (Which takes the capability to trace it.)
	c = b.Container("/bin/true")
	sets := c.Spec.Process.Capabilities
	sets.Bounding = append([]string{"CAP_SYS_PTRACE"}, sets.Bounding...)
	sets.Effective, sets.Permitted = sets.Bounding, sets.Bounding
	c.Spec.Hooks = &specs.Hooks{StartContainer: []specs.Hook{{Path: "/bin/sh", Args: []string{"sh", "-c",
		"readlink /proc/1/exe; if : >> /proc/1/exe; then echo written; fi; exit 3"}}}}
	r := strict(c.Command("run", nil)).Run().Fails(t, "startContainer", "/memfd:berth-init (deleted)")
	if strings.Contains(r.Stderr, "written") {
		t.Error(r.Stderr)
	}
}

// mountTable is what can be compared of two containers' mounts. The kernel lists them in the order
// in which they were made, detached ones too.
func mountTable(v *view.View) []string {
	var table []string
	for _, m := range v.Mounts {
		var groups []string
		for _, o := range m.Optional {
			kind, _, _ := strings.Cut(o, ":")
			groups = append(groups, kind)
		}
		options := slices.Clone(m.Options)
		slices.Sort(options)
		table = append(table, fmt.Sprintf("%s %s %v %v", m.Target, m.Type, options, groups))
	}
	slices.SortStableFunc(table, func(a, b string) int {
		first, _, _ := strings.Cut(a, " ")
		second, _, _ := strings.Cut(b, " ")
		return strings.Compare(first, second)
	})
	return table
}

// All attributes of mounts are the same without mount_setattr, and whether the mount namespace
// begins with a copy of the host's or not.
func TestMountsOnAnOldKernel(t *testing.T) {
	b := harness.New(t)
	source := b.Path("source")
	b.WriteFile("source/sub/deep/file", "x", 0o644)
	b.WriteFile("single", "x", 0o644)
	// A tree with mounts of its own below, that have attributes of their own.
	for _, dir := range []string{"sub", "sub/deep"} {
		path := filepath.Join(source, dir)
		os.MkdirAll(path, 0o755)
		if err := unix.Mount("tmpfs", path, "tmpfs", unix.MS_NOEXEC|unix.MS_NOATIME, "size=64k"); err != nil {
			t.Fatal(err)
		}
		defer unix.Unmount(path, unix.MNT_DETACH)
		if err := os.MkdirAll(filepath.Join(source, "sub/deep"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	config := func(c *harness.Container) {
		c.Spec.Root.Readonly = true
		bind := func(to, from string, options ...string) {
			c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: to, Source: from, Options: options})
		}
		bind("/ro", source, "bind", "ro", "nosuid")
		bind("/rro", source, "rbind", "rro", "rnodev")
		bind("/top", source, "rbind", "ro")
		bind("/times", source, "bind", "noatime", "nodiratime")
		bind("/strict", source, "rbind", "rstrictatime")
		bind("/file", b.Path("single"), "bind", "ro", "noexec")
		bind("/slave", source, "rbind", "rslave")
		bind("/shared", source, "bind", "shared")
		bind("/unbindable", source, "bind", "unbindable")
		c.Spec.Mounts = append(c.Spec.Mounts,
			specs.Mount{Destination: "/fresh", Type: "tmpfs", Source: "tmpfs", Options: []string{"ro", "noexec", "strictatime"}},
			specs.Mount{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup", Options: []string{"ro", "nosuid", "nodev", "noexec"}},
			specs.Mount{Destination: "/dev/shm", Source: "shm", Options: []string{"remount", "bind", "ro", "nosuid"}})
	}
	for _, test := range []struct {
		name   string
		change func(*specs.Spec)
	}{
		{"privileged", func(*specs.Spec) {}},
		{"shared root", func(s *specs.Spec) { s.Linux.RootfsPropagation = "shared" }},
		{"user namespace", func(s *specs.Spec) {
			harness.UserNamespace(s)
			// The kernel gives no part of a tree of mounts away that was made with more rights, and
			// keeps its access times (mount_namespaces(7)).
			s.Mounts = slices.DeleteFunc(s.Mounts, func(m specs.Mount) bool { return m.Destination == "/times" || m.Destination == "/strict" })
			for i := range s.Mounts {
				if m := &s.Mounts[i]; m.Source == source && m.Options[0] == "bind" {
					m.Options[0] = "rbind"
				}
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := harness.New(t)
			look := func(without string) *view.View {
				c := b.Container("/inside", "look")
				config(c)
				test.change(c.Spec)
				// Who has other ids in the root file system makes nothing there.
				for _, m := range c.Spec.Mounts {
					if m.Destination == "/file" {
						c.WriteFile("file", "", 0o644)
					} else if err := os.MkdirAll(c.Path(m.Destination), 0o755); err != nil {
						t.Fatal(err)
					}
				}
				cmd := c.Command("run", nil)
				if without != "" {
					onKernelWithout(t, without, cmd)
				}
				return harness.ParseView(t, cmd.Run().OK(t).Stdout)
			}
			now := mountTable(look(""))
			for _, feature := range []string{"mount_setattr", "open_tree_namespace"} {
				old := look(feature)
				if then := mountTable(old); !slices.Equal(now, then) {
					t.Errorf("with %s:\n%s\nwithout:\n%s", feature, strings.Join(now, "\n"), strings.Join(then, "\n"))
				}
				harness.HasOptions(t, harness.MountAt(t, old, "/rro/sub/deep"), "ro", "nodev", "noexec", "noatime")
			}
		})
	}
}

// What is mounted read-only can't be written to either, and the rest can.
func TestReadonlyOnAnOldKernel(t *testing.T) {
	b := harness.New(t)
	b.WriteFile("data/file", "x", 0o666)
	c := b.Container("/inside", "try", "create=/made", "write=/ro/file,y", "write=/rw/file,y", "write=/proc/sys/kernel/hostname,y", "read=/proc/kcore",
		"remount-rw=/ro", "exec=/rw/busybox")
	c.Spec.Root.Readonly = true
	for to, option := range map[string]string{"/ro": "rro", "/rw": "rnoexec"} {
		c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: to, Source: b.Path("data"), Options: []string{"rbind", option}})
	}
	if err := os.Link(c.Path("bin/busybox"), b.Path("data/busybox")); err != nil {
		t.Fatal(err)
	}
	got := harness.ParseAttempts(t, onOldKernel(t, c.Command("run", nil)).Run().OK(t).Stdout)
	harness.Refused(t, got, "create=/made", "EROFS")
	harness.Refused(t, got, "write=/ro/file,y", "EROFS")
	harness.Refused(t, got, "write=/proc/sys/kernel/hostname,y", "EROFS")
	harness.Refused(t, got, "remount-rw=/ro", "EPERM")
	harness.Refused(t, got, "exec=/rw/busybox", "EACCES")
	harness.Allowed(t, got, "write=/rw/file,y")
	if got["read=/proc/kcore"].Result != "" {
		t.Error("a masked file can be read")
	}
}

// Mounts with other owners have no way around mount_setattr: they are refused by name.
func TestIDMappedMountOnAnOldKernel(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "look")
	harness.UserNamespace(c.Spec)
	c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: "/x", Source: b.Dir, Options: []string{"bind", "idmap"}})
	onOldKernel(t, c.Command("run", nil)).Run().Fails(t, fmt.Sprintf("/mounts/%d", len(c.Spec.Mounts)-1), "idmap", "5.12")
}

// No descriptor gets in without CLOSE_RANGE_CLOEXEC: neither the caller's, nor those that the
// set-up was given.
func TestDescriptorsOnAnOldKernel(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "look")
	c.Extra = extraFiles(b, "a", "b", "c")
	harness.NamespacePath(c.Spec, specs.NetworkNamespace, "/proc/self/ns/net")
	v := harness.ParseView(t, onOldKernel(t, c.Command("run", []string{"--preserve-fds", "1"})).Run().OK(t).Stdout)
	if len(v.FDs) != 4 || v.FDs[3] == "" {
		t.Errorf("open in a container that was given descriptor 3: %v", v.FDs)
	}
	running := b.Container("/inside", "hang")
	running.Extra = extraFiles(b, "a", "b", "c")
	running.RunDetached()
	cmd := running.Command("exec", nil, "/inside", "look")
	v = harness.ParseView(t, onOldKernel(t, cmd).Run().OK(t).Stdout)
	if len(v.FDs) != 3 {
		t.Errorf("open in a process that was added: %v", v.FDs)
	}
}

// A hook inside of the container's namespaces keeps none of the descriptors that led it there.
func TestHookDescriptorsOnAnOldKernel(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true")
	c.WriteFile("list", "#!/bin/sh\nls -l /proc/self/fd >&2\nexit 1\n", 0o755)
	c.Spec.Hooks = &specs.Hooks{StartContainer: []specs.Hook{{Path: "/list", Env: []string{"PATH=/bin", b.Mark()}}}}
	r := onOldKernel(t, c.Command("run", nil)).Run().Fails(t, "/hooks/startContainer/0")
	if strings.Contains(r.Stderr, "pidfd") || strings.Contains(r.Stderr, "socket:") || strings.Contains(r.Stderr, " 4 ->") {
		t.Errorf("the hook has descriptors of the engine: %s", r.Stderr)
	}
}
