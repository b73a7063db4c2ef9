package attacks

import (
	"fmt"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

// CVE-2021-43784: lengths of the config were cut to 16 bits on the way to the init, so that the
// rest of a text was taken for instructions. What is given arrives whole, or is refused.
func TestLongTexts(t *testing.T) {
	harness.NeedNamespace(t, "user")
	b := harness.New(t)
	c := b.Container("/bin/sh", "-c", "echo ${#LONG} $#", "name")
	for _, size := range []int{1<<16 - 1, 1 << 16, 1<<16 + 1, 100_000} {
		c.Spec.Process.Env = []string{"PATH=/bin", "LONG=" + strings.Repeat("x", size)}
		c.Spec.Annotations = map[string]string{"long": strings.Repeat("y", size)}
		c.Spec.Process.Args = append([]string{"/bin/sh", "-c", "echo ${#LONG} $#", "name"}, make([]string, size)...)
		for i := range size {
			c.Spec.Process.Args[4+i] = "a"
		}
		if got := c.Run().OK(t).Stdout; got != fmt.Sprintf("%d %d\n", size, size) {
			t.Errorf("%d arrived as %q", size, got)
		}
		// The attack itself: a path of namespaces so long that it holds a second message, which
		// asks for the host's namespaces.
		evil := *c.Spec.Linux
		evil.Namespaces = []specs.LinuxNamespace{{Type: specs.MountNamespace}, {Type: specs.UTSNamespace}, {Type: specs.PIDNamespace, Path: "/proc/self/ns/pid" + strings.Repeat("/", size)}}
		kept := c.Spec.Linux
		c.Spec.Linux = &evil
		c.Run().Fails(t, "/linux/namespaces/2/path")
		c.Spec.Linux = kept
	}
	c.Spec.Process.Args = []string{"/bin/sh", "-c", "wc -l < /proc/self/uid_map; tail -n 1 /proc/self/uid_map"}
	c.Spec.Process.Env, c.Spec.Annotations = nil, nil
	harness.UserNamespace(c.Spec)
	var ids []specs.LinuxIDMapping
	for i := range uint32(200) { // a page of text is the kernel's limit (user_namespaces(7))
		ids = append(ids, specs.LinuxIDMapping{ContainerID: i, HostID: 1_000_000_000 + 2*i, Size: 1})
	}
	c.Spec.Linux.UIDMappings, c.Spec.Linux.GIDMappings = ids, ids
	if got := strings.Fields(c.Run().OK(t).Stdout); strings.Join(got, " ") != "200 199 1000000398 1" {
		t.Errorf("the mappings arrived as %q", got)
	}
	harness.Report(t, "attacks", 9)
}

// CVE-2022-24769, CVE-2022-27650, CVE-2022-29162: inheritable capabilities that nobody asked for
// are gained by programs with file capabilities, also for a user who should have none.
func TestInheritableCapabilities(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	for _, uid := range []uint32{0, 1000} {
		c.Spec.Process.User.UID = uid
		if v := c.Look(); v.Status["CapInh"] != "0000000000000000" {
			t.Errorf("user %d: inheritable %s", uid, v.Status["CapInh"])
		}
	}
	c = b.Container("/inside", "hang").RunDetached()
	for _, user := range []string{"0", "1000"} {
		for _, flags := range [][]string{nil, {"--cap", "NET_RAW"}, {"--cap", "CAP_SYS_ADMIN", "--cap", "CAP_KILL"}} {
			v := harness.ParseView(t, c.Exec(append([]string{"--user", user}, flags...), "/inside", "look").OK(t).Stdout)
			if v.Status["CapInh"] != "0000000000000000" || v.Status["CapAmb"] != "0000000000000000" {
				t.Errorf("exec --user %s %v: inheritable %s, ambient %s", user, flags, v.Status["CapInh"], v.Status["CapAmb"])
			}
		}
	}
	c.Delete("--force")
	c.WaitExit()
	harness.Report(t, "attacks", 8)
}

// CVE-2026-30892: exec --user 1 ran as user 0. Each form is read as what it says, or refused; none
// gives root that does not say 0.
func TestExecUserIsReadRight(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "hang").RunDetached()
	for user, want := range map[string]string{
		"0": "0 0", "1": "1 0", "2": "2 0", "1:1": "1 1", "1:0": "1 0", "0:1": "0 1", "10": "10 0", "1000": "1000 1001", "1000:5": "1000 5",
		"user": "1000 1001", "user:players": "1000 2000", "root": "0 0", "65534:65534": "65534 65534", "4294967294": "4294967294 0",
	} {
		r := c.Exec([]string{"--user", user}, "/bin/sh", "-c", "echo $(id -u) $(id -g)").OK(t)
		if got := strings.TrimSpace(r.Stdout); got != want {
			t.Errorf("--user %s: runs as %q, want %q", user, got, want)
		}
	}
	// (uid_t)-1 means "leave it as it is" to the kernel: root.
	for _, user := range []string{"4294967295", "4294967296", "-1", "1x", "x1", " 1", "1 ", "1:", "1:x", ":1", "+1", "0x1", "1e0", "nobody-here", "1,0"} {
		if r := c.Exec([]string{"--user", user}, "/bin/sh", "-c", "echo $(id -u) $(id -g)"); r.Code == 0 {
			t.Errorf("--user %q was taken: runs as %q", user, r.Stdout)
		}
	}
	const unchanged = 1<<32 - 1
	d := b.Container("/bin/sh", "-c", "id -u")
	d.Spec.Process.User.UID = unchanged
	d.Run().Fails(t, "/process/user/uid")
	d.Spec.Process.User = specs.User{GID: unchanged}
	d.Run().Fails(t, "/process/user/gid")
	d.Spec.Process.User = specs.User{AdditionalGids: []uint32{unchanged}}
	d.Run().Fails(t, "/process/user/additionalGids/0")
	c.Delete("--force")
	c.WaitExit()
	harness.Report(t, "attacks", 32)
}
