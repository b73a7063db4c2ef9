package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/engine/container"
	"github.com/berth-runtime/berth/engine/program"
	"github.com/berth-runtime/berth/test/harness"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// What explain foresees is what a run executes, to the byte: the image that the container's
// first process has in /proc/PID/exe while it waits for its start.
func TestExplainIsWhatRuns(t *testing.T) {
	t.Run("golden", func(t *testing.T) {
		configs, err := filepath.Glob("../../engine/compile/testdata/*.json")
		if err != nil || len(configs) == 0 {
			t.Fatalf("no configs: %v", err)
		}
		for _, name := range configs {
			t.Run(strings.TrimSuffix(filepath.Base(name), ".json"), func(t *testing.T) {
				b := harness.New(t)
				c := b.Container("/bin/true")
				golden(t, c, name)
				if err := sameAsForeseen(t, c); err != nil {
					t.Fatal(err)
				}
			})
		}
	})
	t.Run("random", func(t *testing.T) {
		seed := rand.Uint64()
		if text := os.Getenv("BERTH_TEST_SEED"); text != "" {
			seed, _ = strconv.ParseUint(text, 10, 64)
		}
		t.Logf("BERTH_TEST_SEED=%d", seed)
		r := rand.New(rand.NewPCG(seed, 0))
		b := harness.New(t)
		made := 0
		const configs = 40
		for range configs {
			c := b.Container("/bin/true")
			randomly(r, c)
			if err := sameAsForeseen(t, c); err != nil {
				t.Log(err) // some combinations the kernel or a check refuses
				continue
			}
			made++
		}
		if made < configs*3/4 {
			t.Errorf("only %d of %d configs could be made", made, configs)
		}
	})
}

// golden gives a container a config of the compiler's tests, with what it names on this machine.
func golden(t *testing.T, c *harness.Container, name string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	data := c.Box.Path("data")
	hosts := c.Box.WriteFile("hosts", "", 0o644)
	if err := os.Mkdir(data, 0o755); err != nil {
		t.Fatal(err)
	}
	replaced := strings.NewReplacer("/srv/rootfs", c.Rootfs(), "/srv/data", data, "/bundle/hosts", hosts).Replace(string(text))
	s := &specs.Spec{}
	if err := json.Unmarshal([]byte(replaced), s); err != nil {
		t.Fatal(err)
	}
	s.Process.Args, s.Process.Cwd = []string{"/bin/true"}, "/"
	s.Linux.CgroupsPath = c.Spec.Linux.CgroupsPath
	// No profile of that name is loaded, and the label is another system's.
	s.Process.ApparmorProfile, s.Process.SelinuxLabel = "", ""
	// A mapped root can't make them in a root file system that is the host's root's.
	c.WriteFile("etc/hosts", "", 0o644)
	if err := os.MkdirAll(c.Path("run/host/notify"), 0o755); err != nil {
		t.Fatal(err)
	}
	c.Spec = s
}

// randomly turns entries of the config on, each of which changes the Program.
func randomly(r *rand.Rand, c *harness.Container) {
	s := c.Spec
	file := c.Box.WriteFile(fmt.Sprintf("file-%d", r.Uint64()), "text", 0o644)
	data := filepath.Join(c.Dir, "data")
	if err := os.Mkdir(data, 0o755); err != nil {
		c.Box.T.Fatal(err)
	}
	some := func(does ...func()) {
		for _, do := range does {
			if r.IntN(3) == 0 {
				do()
			}
		}
	}
	mount := func(destination, kind, source string, options ...string) {
		s.Mounts = append(s.Mounts, specs.Mount{Destination: destination, Type: kind, Source: source, Options: options})
	}
	// A mapped root can't make them in a root file system that is the host's root's.
	for _, dir := range []string{"bound", "mapped", "srv", "run/host/notify", "sys/fs/cgroup"} {
		if err := os.MkdirAll(c.Path(dir), 0o755); err != nil {
			c.Box.T.Fatal(err)
		}
	}
	c.WriteFile("etc/bound", "", 0o644)
	switch r.IntN(3) { // what does not go together
	case 0:
		harness.UserNamespace(s)
		some(func() { mount("/mapped", "bind", filepath.Join(c.Rootfs(), "bin"), "rbind", "idmap") })
		some(func() { mount("/mapped", "bind", filepath.Join(c.Rootfs(), "dev"), "rbind", "idmap") })
	case 1:
		s.Annotations = map[string]string{"run.berth.root.writes": "discard"}
	default:
		some(
			func() { harness.WithoutNamespace(s, specs.PIDNamespace) },
			func() { harness.NamespacePath(s, specs.IPCNamespace, "/proc/self/ns/ipc") },
			func() {
				s.Linux.RootfsPropagation = []string{"shared", "rshared", "slave", "private", "unbindable"}[r.IntN(5)]
			},
		)
	}
	timeout := 5
	some(
		func() { s.Root.Readonly = !s.Root.Readonly },
		func() { s.Hostname, s.Domainname = "a", "b" },
		func() { s.Process.Terminal = true },
		func() { s.Process.User = specs.User{UID: uint32(r.IntN(3)), GID: 7, AdditionalGids: []uint32{8, 9}} },
		func() { s.Process.Env = append(s.Process.Env, "HOME=") },
		func() { s.Process.Env = append(s.Process.Env, "HOME=/x", "A=1", "A=2") },
		func() { c.WriteFile("etc/passwd", fmt.Sprintf("u:x:%d:0::/home/u:/bin/sh\n", r.IntN(3)), 0o644) },
		func() { mount("/etc/bound", "bind", file, "bind", "ro") },
		func() { mount("/bound", "bind", data, "rbind", "rro", "rprivate") },
		func() { mount("/srv", "tmpfs", "tmpfs", "tmpcopyup", "mode=700") },
		func() { mount("/sys/fs/cgroup", "cgroup", "cgroup", "ro") },
		func() { s.Linux.Sysctl = map[string]string{"net.ipv4.ip_forward": "1"} },
		func() { s.Process.Rlimits = []specs.POSIXRlimit{{Type: "RLIMIT_NOFILE", Soft: 100, Hard: 200}} },
		func() { harness.WithoutNamespace(s, specs.CgroupNamespace) },
		func() {
			s.Linux.Namespaces = append(s.Linux.Namespaces, specs.LinuxNamespace{Type: specs.TimeNamespace})
		},
		func() { s.Linux.MaskedPaths = append(s.Linux.MaskedPaths, "/proc/modules", "/srv/none") },
		func() { s.Linux.ReadonlyPaths = append(s.Linux.ReadonlyPaths, "/proc/sys") },
		func() {
			s.Hooks = &specs.Hooks{CreateRuntime: []specs.Hook{{Path: "/bin/true", Args: []string{"true", "x"}, Timeout: &timeout}}}
		},
	)
}

// sameAsForeseen compares what explain says to what is executed. The error is that of a
// container that can't be made.
func sameAsForeseen(t *testing.T, c *harness.Container) error {
	t.Helper()
	c.Write()
	streams := [3]uintptr{}
	for i := range streams {
		f, err := os.OpenFile(c.Box.Path("stream"), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		streams[i] = f.Fd()
	}
	options := &container.CreateOptions{
		Bundle: c.Dir, Attached: true, NotifySocket: "/run/systemd/notify",
		IO: container.IO{Stdio: streams, Preserve: streams[:2], Listen: 1, Console: func(master *os.File) error {
			t.Cleanup(func() { master.Close() }) // which hangs up
			return nil
		}},
	}
	r := &container.Runtime{Root: c.Box.Root}
	foreseen, err := r.Foresee(c.ID, options, 0)
	if err != nil {
		return fmt.Errorf("foresee: %w", err)
	}
	if len(foreseen.Plan.Warnings) != len(foreseen.Warnings) {
		t.Errorf("foreseen with the warnings %q", foreseen.Warnings)
	}
	want, err := foreseen.Program.Image()
	if err != nil {
		t.Fatal(err)
	}
	created, err := r.Create(c.ID, options)
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	defer created.Close()
	defer created.Abandon()
	got, err := os.ReadFile("/proc/" + strconv.Itoa(created.Pid) + "/exe")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		config, _ := os.ReadFile(filepath.Join(c.Dir, "config.json"))
		t.Errorf("the init executes another Program than explain shows:\n%s\nconfig.json: %s", differing(got, want, foreseen.Program), config)
	}
	return nil
}

// differing says where an image differs from another.
func differing(got, want []byte, p *program.Program) string {
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	around := func(b []byte) string { return fmt.Sprintf("%q", b[max(0, min(len(b), at)-32):min(len(b), at+64)]) }
	return fmt.Sprintf("%d bytes, foreseen %d; at %d: %s\nforeseen: %s\n%d calls are foreseen", len(got), len(want), at, around(got), around(want), len(p.Lines()))
}
