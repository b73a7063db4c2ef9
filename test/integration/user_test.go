package integration

import (
	"strings"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

func TestUserAndGroups(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	c.Spec.Process.User.UID, c.Spec.Process.User.GID = 1000, 1001
	c.Spec.Process.User.AdditionalGids = []uint32{2000, 5, 70000}
	v := c.Look()
	for field, want := range map[string]string{
		"Uid": "1000 1000 1000 1000", "Gid": "1001 1001 1001 1001", "Groups": "5 2000 70000",
	} {
		if got := v.Status[field]; got != want {
			t.Errorf("%s: %q, want %q", field, got, want)
		}
	}
}

// Without additional groups there are none, not those of the caller.
func TestGroupsAreDropped(t *testing.T) {
	b := harness.New(t)
	v := b.Container().Look()
	if got := v.Status["Groups"]; got != "" && got != "0" {
		t.Errorf("groups %q", got)
	}
}

// Ids without an entry in the container's passwd file are fine.
// Podman's --group-add keep-groups.
func TestGroupsAreKept(t *testing.T) {
	b := harness.New(t)
	b.Wrap = []string{"setpriv", "--groups", "4444,5555"}
	c := b.Container("/inside", "hang")
	c.Spec.Annotations = map[string]string{"run.oci.keep_original_groups": "1"}
	c.RunDetached()
	if got := statusField(readFile(t, procPath(c.PID, "status")), "Groups"); got != "4444 5555" {
		t.Errorf("groups %q", got)
	}
	if v := lookBy(c); v.Status["Groups"] != "4444 5555" {
		t.Errorf("exec: groups %q", v.Status["Groups"])
	}
	c.Delete("--force")
	c = b.Container()
	c.Spec.Annotations = map[string]string{"run.oci.keep_original_groups": "0"}
	if v := c.Look(); v.Status["Groups"] != "" {
		t.Errorf("with 0: groups %q", v.Status["Groups"])
	}
}

func TestUserWithoutEntry(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	c.Spec.Process.User.UID, c.Spec.Process.User.GID = 4_000_000_000, 3_999_999_999
	v := c.Look()
	if !strings.HasPrefix(v.Status["Uid"], "4000000000 ") || !strings.HasPrefix(v.Status["Gid"], "3999999999 ") {
		t.Errorf("uid %s, gid %s", v.Status["Uid"], v.Status["Gid"])
	}
}

func TestUmask(t *testing.T) {
	for umask, want := range map[uint32]string{0: "0000", 0o077: "0077", 0o022: "0022"} {
		b := harness.New(t)
		c := b.Container()
		c.Spec.Process.User.Umask = ptr(umask)
		if got := c.Look().Status["Umask"]; got != want {
			t.Errorf("umask %q, want %q", got, want)
		}
	}
}

func TestHome(t *testing.T) {
	for _, test := range []struct {
		name   string
		uid    uint32
		env    []string
		passwd string
		want   string
	}{
		{"by the user's entry", 1000, nil, "", "HOME=/home/user"},
		{"root's", 0, nil, "", "HOME=/root"},
		{"given", 1000, []string{"HOME=/given"}, "", "HOME=/given"},
		{"given empty", 1000, []string{"HOME="}, "", "HOME=/home/user"},
		{"no entry", 4711, nil, "", "HOME=/"},
		{"a broken file", 1000, nil, "nonsense\n::::\nuser:x:1000\nuser:x:1000:1:x:/right:/bin/sh\n", "HOME=/right"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := harness.New(t)
			c := b.Container()
			c.Spec.Process.User.UID = test.uid
			c.Spec.Process.Env = append(c.Spec.Process.Env, test.env...)
			if test.passwd != "" {
				c.WriteFile("etc/passwd", test.passwd, 0o644)
			}
			var got []string
			for _, entry := range c.Look().Env {
				if strings.HasPrefix(entry, "HOME=") {
					got = append(got, entry)
				}
			}
			if len(got) != 1 || got[0] != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// A passwd file that is a link out of the container must not be the host's.
func TestHomeIsNotReadFromOutside(t *testing.T) {
	b := harness.New(t)
	outside := b.WriteFile("passwd", "root:x:0:0::/outside:/bin/sh\n", 0o644)
	c := b.Container()
	c.WriteFile("etc/passwd", "", 0o644)
	replaceWithLink(t, c.Path("etc/passwd"), outside)
	for _, entry := range c.Look().Env {
		if entry == "HOME=/outside" {
			t.Error(entry)
		}
	}
}
