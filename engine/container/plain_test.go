package container

import (
	"testing"

	"github.com/berth-runtime/berth/engine/compile"
	"github.com/berth-runtime/berth/engine/plan"
	"golang.org/x/sys/unix"
)

func TestPlainWarning(t *testing.T) {
	layer := func(name string) *compile.Layer { return &compile.Layer{Lower: name, Path: name} }
	for _, test := range []struct {
		layers []*compile.Layer
		want   string
	}{
		{[]*compile.Layer{layer("/a")}, "the kernel refuses an overlay of /a: it is read-only, and its sockets and FIFOs are the host's"},
		{[]*compile.Layer{layer("/a"), layer("/b")}, "the kernel refuses an overlay of /a, of /b: they are read-only, and their sockets and FIFOs are the host's"},
		{[]*compile.Layer{layer("/a"), layer("/b"), layer("/c"), layer("/d"), layer("/e")},
			"the kernel refuses an overlay of /a, of /b, of /c and of 2 more: they are read-only, and their sockets and FIFOs are the host's"},
	} {
		if got := plainWarning(test.layers); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

// The FAT file system on which a machine's firmware finds its boot loader is on most machines.
func TestPlainIsHarmless(t *testing.T) {
	for _, test := range []struct {
		path, cwd string
		kind      int64
		readonly  bool
		want      bool
	}{
		{"/boot/efi", "/root", unix.MSDOS_SUPER_MAGIC, false, true},
		{"/boot/efi", "/boot/efi", unix.MSDOS_SUPER_MAGIC, false, false},
		{"/media/stick", "/media/stick/src", unix.EXFAT_SUPER_MAGIC, false, false},
		{"/media/stick", "/media/stick/src", unix.EXFAT_SUPER_MAGIC, true, true},
		{"/media/stick", "/media/sticks", unix.EXFAT_SUPER_MAGIC, false, true},
		{"/srv", "/root", unix.EXT4_SUPER_MAGIC, false, false},
		{"/srv", "/root", unix.EXT4_SUPER_MAGIC, true, false}, // it has the host's sockets
		{"/srv", "/root", 0, false, false},
	} {
		m := &maker{plan: &plan.Plan{Process: plan.Process{Cwd: test.cwd}}}
		if got := m.harmless(&compile.Layer{Path: test.path, Readonly: test.readonly}, test.kind); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}
