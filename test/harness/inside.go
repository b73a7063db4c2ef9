package harness

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/test/inside/view"
)

// ParseView reads what "inside look" printed.
func ParseView(t testing.TB, text string) *view.View {
	t.Helper()
	v := &view.View{}
	Decode(t, text, v)
	return v
}

// ParseAttempts reads what "inside try" printed, by the words tried.
func ParseAttempts(t testing.TB, text string) map[string]view.Attempt {
	t.Helper()
	var list []view.Attempt
	Decode(t, text, &list)
	attempts := map[string]view.Attempt{}
	for _, a := range list {
		attempts[a.What] = a
	}
	return attempts
}

// Allowed fails the test unless the attempts all succeeded.
func Allowed(t testing.TB, attempts map[string]view.Attempt, words ...string) {
	t.Helper()
	for _, word := range words {
		if a, tried := attempts[word]; !tried || a.Errno != "" {
			t.Errorf("%s: %+v, want it to work", word, a)
		}
	}
}

// Refused fails the test unless the attempt failed with one of the errnos.
func Refused(t testing.TB, attempts map[string]view.Attempt, word string, errnos ...string) {
	t.Helper()
	if a, tried := attempts[word]; !tried || !slices.Contains(errnos, a.Errno) {
		t.Errorf("%s: %+v, want one of %v", word, a, errnos)
	}
}

// MountAt returns the topmost mount on a path, and fails the test where there is none.
func MountAt(t testing.TB, v *view.View, target string) view.Mount {
	t.Helper()
	found, ok := FindMount(v.Mounts, target)
	if !ok {
		t.Fatalf("nothing is mounted on %s", target)
	}
	return found
}

// FindMount returns the topmost mount on a path. Of several on one path, the later in mountinfo
// lies on top.
func FindMount(mounts []view.Mount, target string) (found view.Mount, ok bool) {
	for _, m := range mounts {
		if m.Target == target {
			found, ok = m, true
		}
	}
	return found, ok
}

// HasOptions fails the test unless the mount has all the options, of the mount or of the file
// system; with "!" before it, an option must be absent.
func HasOptions(t testing.TB, m view.Mount, options ...string) {
	t.Helper()
	for _, option := range options {
		name, absent := strings.CutPrefix(option, "!")
		has := slices.Contains(m.Options, name) || slices.Contains(m.Super, name)
		if has == absent {
			t.Errorf("mount on %s: options %v, file system's %v: want %s", m.Target, m.Options, m.Super, option)
		}
	}
}

// Caps are the names of a capability set of /proc/self/status: Inh, Prm, Eff, Bnd or Amb.
func Caps(t testing.TB, v *view.View, set string) []string {
	t.Helper()
	mask, err := strconv.ParseUint(v.Status["Cap"+set], 16, 64)
	if err != nil {
		t.Fatalf("capability set %s: %v", set, err)
	}
	names := []string{}
	for i := range 64 {
		if mask&(1<<i) == 0 {
			continue
		}
		if i < len(capNames) {
			names = append(names, "CAP_"+capNames[i])
		} else {
			names = append(names, fmt.Sprint(i))
		}
	}
	slices.Sort(names)
	return names
}

// capNames are the capabilities by number, capabilities(7).
var capNames = strings.Fields(`CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE
	NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE
	SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM
	BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE`)
