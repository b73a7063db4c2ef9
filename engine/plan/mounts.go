package plan

import (
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/engine/spec"
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
	// Inside is the source as a path of the container, where it lies below an earlier
	// mount of the same config: before that is made, it may not be there.
	Inside string

	// Attributes of the mount (MOUNT_ATTR_…), and those that reach the whole
	// tree below it.
	Set, Clear       uint64
	RecSet, RecClear uint64
	// Loosen are attributes that a bind mount does not take over from its source's
	// mount: all those that no word is about, as soon as a word is about one. Where the
	// kernel forbids it, in a user namespace, they stay.
	Loosen uint64
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
func mountsOf(list []specs.Mount, bundle, root string, hasUserNS bool) ([]Mount, []spec.Complaint) {
	mounts := make([]Mount, 0, len(list))
	var problems []spec.Complaint
	for i := range list {
		at := "/mounts/" + strconv.Itoa(i)
		m, err := mountOf(&list[i], at, bundle, hasUserNS)
		if err != "" {
			problems = append(problems, spec.Complaint{Pointer: at, Message: err})
			continue
		}
		if m.Bind {
			m.Inside = inside(m.Source, root, mounts)
		}
		mounts = append(mounts, m)
	}
	return mounts, problems
}

// inside is the path in the container of a source that earlier mounts cover, or "".
func inside(source, root string, mounts []Mount) string {
	at, ok := strings.CutPrefix(path.Clean(source), path.Clean(root)+"/")
	if !ok {
		return ""
	}
	at = "/" + at
	for i := range mounts {
		if at == mounts[i].Destination || strings.HasPrefix(at, mounts[i].Destination+"/") {
			return at
		}
	}
	return ""
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
	worded := false
	for i, entry := range in.Options {
		list := in.Options[i : i+1]
		if entry == "" || strings.Contains(entry, ",") {
			list = words(entry, in.Type)
		}
		for _, word := range list {
			m.option(word)
			worded = worded || isFlag(word)
		}
	}
	if in.Type == "bind" || in.Type == "rbind" {
		m.Bind = true
		m.Recursive = m.Recursive || in.Type == "rbind"
	}
	switch {
	case m.Remount:
		// With bind it means that one mount, and not its file system, as mount(8) has it;
		// there is no source either way.
		m.Type, m.Source, m.Bind = "", "", false
	case m.Bind:
		if m.Source == "" {
			return m, "a bind mount needs a source"
		}
		if !filepath.IsAbs(m.Source) {
			m.Source = filepath.Join(bundle, m.Source)
		}
		m.Type = ""
		if i := slices.IndexFunc(m.Params, func(word string) bool { return findOption(word) == nil }); i >= 0 {
			// There is no file system of its own that could know it.
			return m, "a bind mount has no option " + strconv.Quote(m.Params[i])
		}
		m.Params = nil // of all file systems, not of a mount
		if worded {
			m.Loosen = lockable &^ m.Set &^ m.Clear
		}
	case m.Type == "cgroup" || m.Type == "cgroup2":
		m.Cgroup = true
		// Of version 1 our peers give each of its mounts these, whatever the options.
		m.Set |= (unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC) &^ m.Clear
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
