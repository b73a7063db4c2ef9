package compile_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/engine/compile"
	"github.com/berth-runtime/berth/engine/program/refinterp"
	"golang.org/x/sys/unix"
)

const labelled = `{"ociVersion": "1.3.0", "root": {"path": "/rootfs"},
	"process": {"args": ["x"], "cwd": "/", "apparmorProfile": "APPARMOR", "selinuxLabel": "SELINUX"},
	"mounts": [
		{"destination": "/proc", "type": "proc", "source": "proc"},
		{"destination": "/sys", "type": "sysfs", "source": "sysfs"},
		{"destination": "/run", "type": "tmpfs", "source": "tmpfs"},
		{"destination": "/own", "type": "tmpfs", "source": "tmpfs", "options": ["context=\"mine:c3,c4\""]},
		{"destination": "/srv", "type": "bind", "source": "/srv"}],
	"linux": {"mountLabel": "MOUNT", "namespaces": [{"type": "mount"}, {"type": "pid"}]}}`

// runLabelled gives the calls that matter of a Program: each attribute that is opened
// with what is written to it, and each file system's label.
func runLabelled(t *testing.T, apparmor, selinux, mount string, answer func(refinterp.Call, *refinterp.Memory) (int64, bool)) []string {
	t.Helper()
	config := strings.NewReplacer("APPARMOR", apparmor, "SELINUX", selinux, "MOUNT", mount).Replace(labelled)
	p := planOf(t, []byte(config))
	code, err := compile.Container(p, factsOf(p))
	if err != nil {
		t.Fatal(err)
	}
	var did []string
	kernel := &refinterp.Fake{FDs: []int{0, 1, 2, 3, 4}}
	kernel.Answer = func(c refinterp.Call, mem *refinterp.Memory) (int64, bool) {
		switch c.Nr {
		case unix.SYS_OPENAT2:
			if name, _ := mem.CString(c.Args[1]); strings.Contains(name, "attr/") {
				did = append(did, "open "+name)
			}
		case unix.SYS_WRITE:
			if text, ok := mem.Bytes(c.Args[1], int(c.Args[2])); ok {
				did = append(did, "write "+string(text))
			}
		case unix.SYS_KEYCTL:
			if c.Args[0] == unix.KEYCTL_JOIN_SESSION_KEYRING && selinux != "" {
				did = append(did, "join a keyring")
			}
		case unix.SYS_FSCONFIG:
			if key, _ := mem.CString(c.Args[2]); key == "context" {
				value, _ := mem.CString(c.Args[3])
				did = append(did, "context "+value)
			}
		}
		if answer != nil {
			if result, ok := answer(c, mem); ok {
				return result, ok
			}
		}
		return inTheChild(c, mem)
	}
	result, err := refinterp.Run(code.Segment(), kernel)
	if err != nil || result.Failure != nil {
		t.Fatalf("%v, %+v", err, result.Failure)
	}
	return did
}

// What is asked of a security module, and by which file: on this machine there may be none to ask.
func TestLabels(t *testing.T) {
	same := func(what string, got []string, want ...string) {
		t.Helper()
		if what != "mount label" { // the one that the config gives itself is always there
			got = slices.DeleteFunc(got, func(s string) bool { return s == "context mine:c3,c4" })
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	same("AppArmor", runLabelled(t, "profile", "", "", nil), "open thread-self/attr/apparmor/exec", "write exec profile")
	// Before Linux 5.8 the module has no attributes of its own.
	same("AppArmor before 5.8", runLabelled(t, "profile", "", "", func(c refinterp.Call, mem *refinterp.Memory) (int64, bool) {
		name, _ := mem.CString(c.Args[1])
		return -int64(unix.ENOENT), c.Nr == unix.SYS_OPENAT2 && strings.Contains(name, "attr/apparmor")
	}), "open thread-self/attr/apparmor/exec", "open thread-self/attr/exec", "write exec profile")
	same("unconfined", runLabelled(t, "unconfined", "", "", nil))
	keyring := []string{"open thread-self/attr/keycreate", "write u:r:t:s0", "join a keyring"}
	same("SELinux", runLabelled(t, "", "u:r:t:s0", "", nil), append(keyring, "open thread-self/attr/exec", "write u:r:t:s0")...)
	same("both", runLabelled(t, "profile", "u:r:t:s0", "", nil), append(keyring,
		"open thread-self/attr/apparmor/exec", "write exec profile", "open thread-self/attr/exec", "write u:r:t:s0")...)
	// The kernel labels proc and sysfs itself, a bind mount has the labels of its files, and what
	// the config says of one mount goes first.
	same("mount label", runLabelled(t, "", "", "u:object_r:t:s0:c1,c2", nil), "context u:object_r:t:s0:c1,c2", "context mine:c3,c4")
}
