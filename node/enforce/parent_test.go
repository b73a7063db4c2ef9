package enforce

import (
	"os"
	"testing"

	"github.com/berth-runtime/berth/internal/settings"
)

// The line of the settings that is ours comes and goes, and the administrator's stay.
func TestBerthParent(t *testing.T) {
	const file = settings.File
	for _, c := range []struct{ before, applied string }{
		{"", "cgroup-parent = \"/fleet\"\n"},
		{"# mine\nroot = \"/srv\"\n", "# mine\nroot = \"/srv\"\ncgroup-parent = \"/fleet\"\n"},
		{"# mine\ncgroup-parent = \"/other\"\n", "# mine\ncgroup-parent = \"/fleet\"\n"},
		{"cgroup-parent = \"/fleet\"\n", "cgroup-parent = \"/fleet\"\n"},
	} {
		m := machineWith(t, "unified")
		if c.before != "" {
			m.Write(file, c.before)
		}
		start := m.Snapshot()
		attempt(t, m, 0, apply(t, m, "cgroup-root: /fleet\n"))
		if text, err := os.ReadFile(m.Dir + file); err != nil || string(text) != c.applied {
			t.Errorf("%q became %q, %v", c.before, text, err)
		}
		// Changed by another program, and mended.
		m.Write(file, c.before+"cgroup-driver = \"auto\"\n")
		attempt(t, m, 0, apply(t, m, "cgroup-root: /fleet\n"))
		if s, err := settings.Parse(file, m.Read(file)); err != nil || s.Parent != "/fleet" {
			t.Errorf("%+v, %v", s, err)
		}
		// Another boot has it still, and undo gives it back there, too.
		m.Write("/proc/sys/kernel/random/boot_id", "boot-2\n")
		m.Write(file, c.applied)
		attempt(t, m, 0, undo)
		m.Write("/proc/sys/kernel/random/boot_id", "boot-1\n")
		same(t, "undo of "+c.before, start, m.Snapshot())
	}
}
