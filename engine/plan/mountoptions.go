package plan

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// mountOption is a word of a mount's options that means something to the VFS or
// to us. All other words belong to the file system.
type mountOption struct {
	word string
	kind optionKind
	// What an attribute sets and clears, and the flag of a propagation.
	set, clear uint64
}

type optionKind uint8

const (
	attribute   optionKind = iota // of the mount; with an r in front it reaches the whole tree
	propagation                   // MS_SHARED and the like
	parameter                     // of every file system: handed to fsconfig(2) as it is
	withoutUse                    // what the kernel does anyway, or does no longer
	special                       // see Mount.option
)

// mountOptions is all that is understood, sorted by word, and what `berth
// features` tells. The access time is a field of several bits: each of its words
// clears the whole field, or mount_setattr(2) answers EINVAL.
var mountOptions = [...]mountOption{
	{word: "async", kind: withoutUse},
	{word: "atime", set: unix.MOUNT_ATTR_RELATIME, clear: unix.MOUNT_ATTR__ATIME},
	{word: "bind", kind: special},
	{word: "defaults", kind: withoutUse},
	{word: "dev", clear: unix.MOUNT_ATTR_NODEV},
	{word: "diratime", clear: unix.MOUNT_ATTR_NODIRATIME},
	{word: "dirsync", kind: parameter},
	{word: "exec", clear: unix.MOUNT_ATTR_NOEXEC},
	{word: "idmap", kind: special},
	{word: "iversion", kind: withoutUse}, // the file system's own business
	{word: "lazytime", kind: parameter},
	{word: "loud", kind: withoutUse},
	{word: "mand", kind: withoutUse}, // gone with Linux 5.15
	{word: "noatime", set: unix.MOUNT_ATTR_NOATIME, clear: unix.MOUNT_ATTR__ATIME},
	{word: "nodev", set: unix.MOUNT_ATTR_NODEV},
	{word: "nodiratime", set: unix.MOUNT_ATTR_NODIRATIME},
	{word: "noexec", set: unix.MOUNT_ATTR_NOEXEC},
	{word: "noiversion", kind: withoutUse},
	{word: "nolazytime", kind: parameter},
	{word: "nomand", kind: withoutUse},
	// relatime is what the kernel does unless told otherwise (since 2.6.30), so
	// that its opposites lead back to it too.
	{word: "norelatime", set: unix.MOUNT_ATTR_RELATIME, clear: unix.MOUNT_ATTR__ATIME},
	{word: "nostrictatime", set: unix.MOUNT_ATTR_RELATIME, clear: unix.MOUNT_ATTR__ATIME},
	{word: "nosuid", set: unix.MOUNT_ATTR_NOSUID},
	{word: "nosymfollow", set: unix.MOUNT_ATTR_NOSYMFOLLOW},
	{word: "private", kind: propagation, set: unix.MS_PRIVATE},
	{word: "rbind", kind: special},
	{word: "relatime", set: unix.MOUNT_ATTR_RELATIME, clear: unix.MOUNT_ATTR__ATIME},
	{word: "remount", kind: special},
	{word: "ridmap", kind: special},
	{word: "ro", set: unix.MOUNT_ATTR_RDONLY},
	{word: "rprivate", kind: propagation, set: unix.MS_PRIVATE | unix.MS_REC},
	{word: "rshared", kind: propagation, set: unix.MS_SHARED | unix.MS_REC},
	{word: "rslave", kind: propagation, set: unix.MS_SLAVE | unix.MS_REC},
	{word: "runbindable", kind: propagation, set: unix.MS_UNBINDABLE | unix.MS_REC},
	{word: "rw", clear: unix.MOUNT_ATTR_RDONLY},
	{word: "shared", kind: propagation, set: unix.MS_SHARED},
	{word: "silent", kind: withoutUse},
	{word: "slave", kind: propagation, set: unix.MS_SLAVE},
	{word: "strictatime", set: unix.MOUNT_ATTR_STRICTATIME, clear: unix.MOUNT_ATTR__ATIME},
	{word: "suid", clear: unix.MOUNT_ATTR_NOSUID},
	{word: "symfollow", clear: unix.MOUNT_ATTR_NOSYMFOLLOW},
	{word: "sync", kind: parameter},
	{word: "tmpcopyup", kind: special},
	{word: "unbindable", kind: propagation, set: unix.MS_UNBINDABLE},
}

func findOption(word string) *mountOption {
	i, found := slices.BinarySearchFunc(mountOptions[:], word, func(o mountOption, word string) int { return strings.Compare(o.word, word) })
	if !found {
		return nil
	}
	return &mountOptions[i]
}

// MountOptions lists the words that mean something to us in a mount's options,
// sorted.
func MountOptions() []string {
	var words []string
	for i := range mountOptions {
		o := &mountOptions[i]
		words = append(words, o.word)
		if o.kind == attribute {
			words = append(words, "r"+o.word)
		}
	}
	slices.Sort(words)
	return words
}

// words takes an entry of a mount's options apart, which may hold several, as in
// /etc/fstab, or none: peers join all entries by commas. A comma between double quotes
// belongs to an SELinux context, one behind a backslash to a name in an overlay.
func words(entry, fs string) []string {
	var list []string
	start, quoted, escaped := 0, false, false
	for i := range len(entry) {
		switch {
		case escaped:
			escaped = false
		case entry[i] == '\\':
			escaped = fs == "overlay"
		case entry[i] == '"':
			quoted = !quoted
		case entry[i] == ',' && !quoted:
			list, start = append(list, entry[start:i]), i+1
		}
	}
	list = append(list, entry[start:])
	return slices.DeleteFunc(list, func(word string) bool { return word == "" })
}

// option applies one word of a mount's options.
func (m *Mount) option(word string) {
	o := findOption(word)
	if o == nil {
		if rest, found := strings.CutPrefix(word, "r"); found {
			// The recursive ones: mount_setattr(2) with AT_RECURSIVE, 5.12.
			if o = findOption(rest); o != nil && o.kind == attribute {
				m.RecSet = m.RecSet&^o.clear | o.set
				m.RecClear = m.RecClear&^o.set | o.clear
				return
			}
		}
		m.Params = append(m.Params, word)
		return
	}
	switch o.kind {
	case attribute:
		m.Set = m.Set&^o.clear | o.set
		m.Clear = m.Clear&^o.set | o.clear
	case propagation:
		m.Propagation = append(m.Propagation, uintptr(o.set))
	case parameter:
		m.Params = append(m.Params, word)
	case special:
		switch word {
		case "bind":
			m.Bind = true
		case "rbind":
			m.Bind, m.Recursive = true, true
		case "remount":
			m.Remount = true
		case "tmpcopyup":
			m.CopyUp = true
		case "idmap":
			m.IDMap = &IDMap{}
		case "ridmap":
			m.IDMap = &IDMap{Recursive: true}
		}
	}
}

// isFlag reports whether a word is a flag of mount(2), also one that has no use by now.
// A bind mount with such a word is remounted by our peers, with those flags alone.
func isFlag(word string) bool {
	o := findOption(word)
	return o != nil && word != "defaults" && (o.kind == attribute || o.kind == parameter || o.kind == withoutUse)
}

// lockable are the attributes other than the access time, which is kept where no word
// is about it (mount(2), MS_REMOUNT).
const lockable = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC | unix.MOUNT_ATTR_NOSYMFOLLOW

// Propagation returns the MS_ flags of a propagation word.
func Propagation(word string) (uintptr, bool) {
	if o := findOption(word); o != nil && o.kind == propagation {
		return uintptr(o.set), true
	}
	return 0, false
}

// AttributeWords are the options that say what attributes a mount is given.
func AttributeWords(set uint64, prefix string) []string {
	var words []string
	for _, word := range [...]string{"ro", "nosuid", "nodev", "noexec", "nodiratime", "nosymfollow", "noatime", "strictatime"} {
		if set&findOption(word).set != 0 {
			words = append(words, prefix+word)
		}
	}
	return words
}
