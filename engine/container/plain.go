package container

import (
	"slices"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/engine/compile"
	"golang.org/x/sys/unix"
)

// warnOfPlain says which parts of the root are the host's, read-only, as the kernel refuses
// overlays of them: once, and where that can make a difference.
func (m *maker) warnOfPlain() {
	m.plain = slices.DeleteFunc(m.plain, func(l *compile.Layer) bool { return m.harmless(l, fileSystem(l.Lower)) })
	if len(m.plain) > 0 {
		m.runtime.warn("%s", plainWarning(m.plain))
	}
}

// harmless reports whether a layer that is no overlay does what is expected of one: on most
// machines there is a /boot/efi. What can hold no sockets gives none away, and that it can't be
// written to is of no account but where the process begins.
func (m *maker) harmless(l *compile.Layer, kind int64) bool {
	switch kind {
	case unix.MSDOS_SUPER_MAGIC, unix.EXFAT_SUPER_MAGIC, unix.AUTOFS_SUPER_MAGIC:
		_, holds := below(l.Path, m.plan.Process.Cwd)
		return l.Readonly || !holds && l.Path != m.plan.Process.Cwd
	}
	return false
}

// fileSystem is the type of the file system of a path by its number in statfs(2), 0 if it is not
// known.
func fileSystem(name string) int64 {
	var st unix.Statfs_t
	if unix.Statfs(name, &st) != nil {
		return 0
	}
	return int64(st.Type)
}

// plainWarning names a few of the layers.
func plainWarning(layers []*compile.Layer) string {
	const few = 3
	text := "the kernel refuses an overlay of " + layers[0].Lower
	for i, l := range layers[1:] {
		if i+1 == few {
			text += " and of " + strconv.Itoa(len(layers)-few) + " more"
			break
		}
		text += ", of " + l.Lower
	}
	what := ": it is read-only, and its sockets and FIFOs are the host's"
	if len(layers) > 1 {
		what = strings.NewReplacer("it is", "they are", "its", "their").Replace(what)
	}
	return text + what
}
