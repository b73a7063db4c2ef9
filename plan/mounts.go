package plan

import (
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/spec"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Mount is one mount of the container, as the new mount API wants it.
type Mount struct {
	At          string
	Destination string // clean and absolute inside the container
	Type        string // file system type; "" for a bind mount
	Source      string // absolute for a bind mount
	Bind        bool
	Recursive   bool // rbind

	// Attributes of the mount (MOUNT_ATTR_…), and those that reach the whole
	// tree below it.
	Set, Clear       uint64
	RecSet, RecClear uint64
	// Propagation holds one MS_ propagation type each, in order, MS_REC for the
	// recursive ones.
	Propagation []uintptr
	// Params are the file system's own options. A parameter without "=" is a flag.
	Params  []string
	Remount bool
	CopyUp  bool
	IDMap   *IDMap
	Cgroup  bool // the container's view of its cgroups
}

// IDMap is the ownership mapping of one mount.
type IDMap struct {
	UID, GID  []specs.LinuxIDMapping // empty: those of the container's user namespace
	Recursive bool
}

// ReadOnly reports whether the mount itself is to be read-only.
func (m *Mount) ReadOnly() bool { return m.Set&unix.MOUNT_ATTR_RDONLY != 0 }

// mountsOf translates the mounts array.
func mountsOf(list []specs.Mount, bundle string, hasUserNS bool) ([]Mount, []spec.Complaint) {
	mounts := make([]Mount, 0, len(list))
	var problems []spec.Complaint
	for i := range list {
		at := "/mounts/" + strconv.Itoa(i)
		m, err := mountOf(&list[i], at, bundle, hasUserNS)
		if err != "" {
			problems = append(problems, spec.Complaint{Pointer: at, Message: err})
			continue
		}
		mounts = append(mounts, m)
	}
	return mounts, problems
}

func mountOf(in *specs.Mount, at, bundle string, hasUserNS bool) (Mount, string) {
	m := Mount{
		At: at,
		// Relative destinations are relative to "/", says the spec; path.Clean of a
		// rooted path keeps ".." inside.
		Destination: path.Clean("/" + in.Destination),
		Type:        in.Type,
		Source:      in.Source,
	}
	for _, word := range in.Options {
		m.option(word)
	}
	if in.Type == "bind" || in.Type == "rbind" {
		m.Bind = true
		m.Recursive = m.Recursive || in.Type == "rbind"
	}
	switch {
	case m.Bind:
		if m.Source == "" {
			return m, "a bind mount needs a source"
		}
		if !filepath.IsAbs(m.Source) {
			m.Source = filepath.Join(bundle, m.Source)
		}
		m.Type = ""
	case m.Remount:
		m.Type = ""
	case m.Type == "cgroup" || m.Type == "cgroup2":
		m.Cgroup = true
	case m.Type == "":
		return m, "a mount that is no bind mount needs a type"
	}
	if m.CopyUp && m.Type != "tmpfs" {
		return m, "tmpcopyup is for tmpfs only"
	}
	if m.Destination == "/" && !m.Remount {
		return m, "the root of the container can't be mounted over; set root.path instead"
	}
	if len(in.UIDMappings) > 0 || len(in.GIDMappings) > 0 {
		if m.IDMap == nil {
			m.IDMap = &IDMap{}
		}
		m.IDMap.UID, m.IDMap.GID = in.UIDMappings, in.GIDMappings
	}
	if m.IDMap != nil {
		if !m.Bind {
			return m, "only bind mounts can be idmapped"
		}
		if len(m.IDMap.UID) == 0 && !hasUserNS {
			return m, "idmap without uidMappings and gidMappings needs a container with a user namespace"
		}
	}
	return m, ""
}

// option applies one word of a mount's options; a word that names nothing of
// the VFS belongs to the file system.
func (m *Mount) option(word string) {
	switch word {
	case "defaults", "async", "loud", "nomand", "mand", "noiversion", "iversion":
		// The kernel's own behaviour, or what it no longer has: mand went with
		// Linux 5.15, iversion is the file system's own business.
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
	case "sync", "dirsync", "lazytime", "nolazytime", "silent":
		if word != "silent" {
			m.Params = append(m.Params, word)
		}
	default:
		if m.attribute(word) || m.propagation(word) {
			return
		}
		m.Params = append(m.Params, word)
	}
}

// attribute applies the words that are attributes of a mount. The recursive
// ones are spelt with an r in front (mount_setattr(2) with AT_RECURSIVE, 5.12).
func (m *Mount) attribute(word string) bool {
	set, clear, ok := attributeOf(word)
	if ok {
		m.Set = m.Set&^clear | set
		m.Clear = m.Clear&^set | clear
		return true
	}
	if rest, found := strings.CutPrefix(word, "r"); found {
		if set, clear, ok = attributeOf(rest); ok {
			m.RecSet = m.RecSet&^clear | set
			m.RecClear = m.RecClear&^set | clear
			return true
		}
	}
	return false
}

// attributeOf returns the attributes that a word sets and clears. The access
// time is a field of several bits: each of its words clears the whole field, as
// mount_setattr(2) demands.
func attributeOf(word string) (set, clear uint64, ok bool) {
	switch word {
	case "ro":
		return unix.MOUNT_ATTR_RDONLY, 0, true
	case "rw":
		return 0, unix.MOUNT_ATTR_RDONLY, true
	case "nosuid":
		return unix.MOUNT_ATTR_NOSUID, 0, true
	case "suid":
		return 0, unix.MOUNT_ATTR_NOSUID, true
	case "nodev":
		return unix.MOUNT_ATTR_NODEV, 0, true
	case "dev":
		return 0, unix.MOUNT_ATTR_NODEV, true
	case "noexec":
		return unix.MOUNT_ATTR_NOEXEC, 0, true
	case "exec":
		return 0, unix.MOUNT_ATTR_NOEXEC, true
	case "nodiratime":
		return unix.MOUNT_ATTR_NODIRATIME, 0, true
	case "diratime":
		return 0, unix.MOUNT_ATTR_NODIRATIME, true
	case "nosymfollow":
		return unix.MOUNT_ATTR_NOSYMFOLLOW, 0, true
	case "symfollow":
		return 0, unix.MOUNT_ATTR_NOSYMFOLLOW, true
	case "noatime":
		return unix.MOUNT_ATTR_NOATIME, unix.MOUNT_ATTR__ATIME &^ unix.MOUNT_ATTR_NOATIME, true
	case "atime", "relatime", "norelatime", "nostrictatime":
		// relatime is what the kernel does unless told otherwise (since 2.6.30).
		return unix.MOUNT_ATTR_RELATIME, unix.MOUNT_ATTR__ATIME, true
	case "strictatime":
		return unix.MOUNT_ATTR_STRICTATIME, unix.MOUNT_ATTR__ATIME &^ unix.MOUNT_ATTR_STRICTATIME, true
	}
	return 0, 0, false
}

func (m *Mount) propagation(word string) bool {
	flag, ok := Propagation(word)
	if ok {
		m.Propagation = append(m.Propagation, flag)
	}
	return ok
}

// Propagation returns the MS_ flags of a propagation word.
func Propagation(word string) (uintptr, bool) {
	switch word {
	case "shared":
		return unix.MS_SHARED, true
	case "rshared":
		return unix.MS_SHARED | unix.MS_REC, true
	case "slave":
		return unix.MS_SLAVE, true
	case "rslave":
		return unix.MS_SLAVE | unix.MS_REC, true
	case "private":
		return unix.MS_PRIVATE, true
	case "rprivate":
		return unix.MS_PRIVATE | unix.MS_REC, true
	case "unbindable":
		return unix.MS_UNBINDABLE, true
	case "runbindable":
		return unix.MS_UNBINDABLE | unix.MS_REC, true
	}
	return 0, false
}
