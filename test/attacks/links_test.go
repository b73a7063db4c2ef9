package attacks

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
)

// eachWay runs a test with a container whose root has, at name, a link that leads out to the
// outside directory: once for each way.
func eachWay(t *testing.T, name string, files map[string]string, dirs []string, test func(t *testing.T, c *harness.Container, o *outside)) {
	t.Helper()
	b := harness.New(t)
	o := newOutside(b, files, dirs...)
	c := b.Container("/bin/true")
	c.Spec.Hooks = &specs.Hooks{CreateContainer: []specs.Hook{{Path: harness.Helper(t), Args: []string{"hook", "hook", "mounts", b.Path("calls")}}}}
	makeTree(t, b.Path("volume"), map[string]string{"f": "the volume's"}, nil)
	given := *c.Spec
	for way, target := range ways(o.dir) {
		t.Run(way, func(t *testing.T) {
			spec, linux, process := given, *given.Linux, *given.Process
			spec.Mounts, spec.Linux, spec.Process = slices.Clone(given.Mounts), &linux, &process
			c.Spec = &spec
			link(c, name, target)
			test(t, c, o)
			mountedInside(t, b, c)
			o.untouched()
			harness.Report(t, "attacks", 1)
		})
	}
}

// leadOn lets the link at name lead to a file in the directory that it led to.
func leadOn(t *testing.T, c *harness.Container, name, file string) {
	t.Helper()
	target, err := os.Readlink(c.Path(name))
	check(t, err)
	link(c, name, filepath.Join(target, file))
}

// tryRun runs the container, which may be refused, but in one line.
func tryRun(t *testing.T, c *harness.Container) harness.Result {
	t.Helper()
	r := c.Run()
	if r.Code != 0 {
		r.Fails(t)
	}
	return r
}

// CVE-2019-18837, and CVE-2021-30465 without the race: a mount target is a link, or below one.
func TestMountTargetIsALink(t *testing.T) {
	dirs := []string{"below", "deep/er"}
	files := map[string]string{"file": "the host's"}
	for _, destination := range []string{"/lead", "/lead/below", "/lead/new", "/lead/deep/er/new", "/lead/file", "/lead/newfile"} {
		t.Run(filepath.Base(destination), func(t *testing.T) {
			eachWay(t, "lead", files, dirs, func(t *testing.T, c *harness.Container, o *outside) {
				source := c.Box.Path("volume")
				if strings.Contains(destination, "file") {
					source = filepath.Join(source, "f")
				}
				c.Spec.Mounts = append(c.Spec.Mounts, bind(destination, source))
				tryRun(t, c)
				c.Spec.Mounts[len(c.Spec.Mounts)-1] = specs.Mount{Destination: destination, Type: "tmpfs", Source: "tmpfs"}
				tryRun(t, c)
			})
		})
	}
}

// CVE-2019-19921, CVE-2023-27561, CVE-2023-28642, CVE-2025-54867: where /proc or /sys is a link,
// what is masked and labelled through it later is something else than the container's procfs.
func TestProcOrSysIsALink(t *testing.T) {
	for _, name := range []string{"proc", "sys"} {
		t.Run(name, func(t *testing.T) {
			dirs := []string{"self/attr", "sys/kernel", "fs"}
			eachWay(t, name, nil, dirs, func(t *testing.T, c *harness.Container, o *outside) {
				c.Run().Fails(t, "/"+name)
				// Also where the link ends inside: a volume may be shared with a container that
				// changes it.
				link(c, name, "/root")
				c.Run().Fails(t, "/"+name)
				link(c, name, "sideways")
				makeTree(t, c.Path("sideways"), nil, dirs)
				c.Run().Fails(t, "/"+name)
			})
		})
	}
}

// CVE-2026-41579, CVE-2026-47766: device nodes and links are made, and old ones removed, in what
// /dev leads to.
func TestDevIsALink(t *testing.T) {
	files := map[string]string{"ptmx": "the host's", "console": "the host's", "null": "the host's"}
	for _, mounted := range []bool{true, false} {
		t.Run(map[bool]string{true: "mounted", false: "of the image"}[mounted], func(t *testing.T) {
			eachWay(t, "dev", files, []string{"pts", "shm", "mqueue"}, func(t *testing.T, c *harness.Container, o *outside) {
				if !mounted {
					withoutMount(c, "/dev")
				}
				tryRun(t, c)
				withoutMount(c, "/dev/pts")
				withoutMount(c, "/dev/shm")
				withoutMount(c, "/dev/mqueue")
				tryRun(t, c)
			})
		})
	}
}

// The same for names in a /dev of the image: CVE-2025-52565 has /dev/console and /dev/pts lead
// elsewhere when the terminal is mounted.
func TestConsoleLeadsOutside(t *testing.T) {
	for _, name := range []string{"dev/console", "dev/pts", "dev/ptmx", "dev/pts/ptmx"} {
		t.Run(strings.ReplaceAll(name, "/", "-"), func(t *testing.T) {
			eachWay(t, name, map[string]string{"ptmx": "the host's"}, nil, func(t *testing.T, c *harness.Container, o *outside) {
				if name != "dev/pts" {
					leadOn(t, c, name, "ptmx") // in the place of a file, a folder would be no trap
				}
				withoutMount(c, "/dev")
				withoutMount(c, "/dev/shm")
				withoutMount(c, "/dev/mqueue")
				for _, pts := range []bool{true, false} {
					if !pts {
						withoutMount(c, "/dev/pts")
					}
					c.Spec.Process.Terminal = true
					// Whatever is at the console must be the terminal.
					c.Spec.Process.Args = []string{"/bin/sh", "-c", "test -c /dev/console && test $(stat -L -c %t:%T /dev/console) = $(stat -L -c %t:%T /proc/self/fd/0)"}
					s := c.Box.FDSocket(fmt.Sprintf("console-%s-%v", filepath.Base(t.Name()), pts))
					r := c.TryRunDetached("--console-socket", s.Path)
					if r.Code != 0 {
						r.Fails(t)
						continue
					}
					terminal := s.ReceiveTerminal()
					if status := c.WaitExit(); status.ExitStatus() != 0 {
						t.Errorf("/dev/console is not the terminal: status %v, %q", status, terminal.All())
					}
					c.Delete()
				}
			})
		})
	}
}

// CVE-2025-31133, CVE-2025-62161: files are masked with /dev/null, and the container's own may be
// anything.
func TestMaskedWithAnotherNull(t *testing.T) {
	makers := map[string]func(t *testing.T, path string, o *outside){
		"link to a file outside": func(t *testing.T, path string, o *outside) { check(t, os.Symlink(o.dir+"/file", path)) },
		"link into procfs": func(t *testing.T, path string, o *outside) {
			check(t, os.Symlink("/proc/sys/kernel/core_pattern", path))
		},
		"regular file": func(t *testing.T, path string, o *outside) { check(t, os.WriteFile(path, []byte("evil"), 0o666)) },
		"other device": func(t *testing.T, path string, o *outside) {
			check(t, unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))))
		},
		"the device": func(t *testing.T, path string, o *outside) {
			check(t, unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
		},
		"nothing at all":  func(t *testing.T, path string, o *outside) {},
		"a missing place": func(t *testing.T, path string, o *outside) { check(t, os.Symlink("/no/where", path)) },
	}
	for name, make := range makers {
		t.Run(name, func(t *testing.T) {
			b := harness.New(t)
			o := newOutside(b, map[string]string{"file": "the host's"})
			c := b.Container("/inside", "look", "/etc/secret")
			withoutMount(c, "/dev")
			withoutMount(c, "/dev/pts")
			withoutMount(c, "/dev/shm")
			withoutMount(c, "/dev/mqueue")
			c.WriteFile("etc/secret", "secret", 0o644)
			c.Spec.Linux.MaskedPaths = append(c.Spec.Linux.MaskedPaths, "/etc/secret")
			c.Spec.Linux.Resources = nil
			make(t, c.Path("dev/null"), o)
			r := c.Run()
			if name == "the device" || name == "nothing at all" {
				r.OK(t)
			}
			if r.Code == 0 {
				f := harness.ParseView(t, r.Stdout).Files["/etc/secret"]
				if f.Type != "char" || f.Major != 1 || f.Minor != 3 {
					t.Errorf("the masked file is %+v, not the null device", f)
				}
			} else {
				r.Fails(t, "/dev/null")
			}
			o.untouched()
			harness.Report(t, "attacks", 1)
		})
	}
}

// The same after the runtime has found that the container's /dev/null is the device: whoever shares
// the root with the container exchanges it then. A hook does that, at an instant that TestRace may
// or may not meet.
func TestNullIsExchangedBeforeTheMasking(t *testing.T) {
	b := harness.New(t)
	o := newOutside(b, map[string]string{"file": "the host's"})
	c := b.Container("/inside", "look", "/etc/secret")
	c.WriteFile("etc/secret", "secret", 0o644)
	for _, name := range []string{"/dev", "/dev/pts", "/dev/shm", "/dev/mqueue"} {
		withoutMount(c, name)
	}
	c.Spec.Linux.MaskedPaths = append(c.Spec.Linux.MaskedPaths, "/etc/secret")
	c.Spec.Linux.Resources = nil
	for name, exchange := range map[string]string{
		"link to a file outside": "ln -s " + o.dir + "/file", "link into procfs": "ln -s /proc/sys/kernel/core_pattern",
		"regular file": "cp " + o.dir + "/file", "a missing place": "ln -s /no/where",
	} {
		null := c.Path("dev/null")
		c.Spec.Hooks = &specs.Hooks{CreateContainer: []specs.Hook{{Path: "/bin/sh", Args: []string{"sh", "-c", "rm -f " + null + " && " + exchange + " " + null}}}}
		if f := harness.ParseView(t, c.Run().OK(t).Stdout).Files["/etc/secret"]; f.Type != "char" || f.Major != 1 || f.Minor != 3 {
			t.Errorf("%s: the masked file is %+v, not the null device", name, f)
		}
		unlink(t, null)
		o.untouched()
		harness.Report(t, "attacks", 1)
	}
}

// CVE-2025-24965: a handler wrote its config to a fixed name in the root file system.
func TestHandlersConfigIsALink(t *testing.T) {
	eachWay(t, ".krun_config.json", map[string]string{"config": "kept"}, nil, func(t *testing.T, c *harness.Container, o *outside) {
		leadOn(t, c, ".krun_config.json", "config")
		for _, handler := range []string{"krun", "wasm", "wasmtime"} {
			c.Spec.Annotations = map[string]string{"run.oci.handler": handler, "module.wasm.image/variant": "compat"}
			tryRun(t, c)
		}
	})
}
