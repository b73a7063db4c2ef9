package mounts

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// options are the options of one mount, sorted by who acts on them.
type options struct {
	flags       uintptr
	propagation []uintptr // each a mount(2) of its own
	data        []string  // for the file system
	loop        bool
	uidMap      []syscall.SysProcIDMap
	gidMap      []syscall.SysProcIDMap
}

// flag says which mount flag an option stands for, and whether it clears it.
func flag(option string) (bit uintptr, clear, known bool) {
	switch option {
	case "defaults":
		return 0, false, true
	case "ro":
		return unix.MS_RDONLY, false, true
	case "rw":
		return unix.MS_RDONLY, true, true
	case "bind":
		return unix.MS_BIND, false, true
	case "rbind":
		return unix.MS_BIND | unix.MS_REC, false, true
	case "remount":
		return unix.MS_REMOUNT, false, true
	case "nosuid":
		return unix.MS_NOSUID, false, true
	case "suid":
		return unix.MS_NOSUID, true, true
	case "nodev":
		return unix.MS_NODEV, false, true
	case "dev":
		return unix.MS_NODEV, true, true
	case "noexec":
		return unix.MS_NOEXEC, false, true
	case "exec":
		return unix.MS_NOEXEC, true, true
	case "sync":
		return unix.MS_SYNCHRONOUS, false, true
	case "async":
		return unix.MS_SYNCHRONOUS, true, true
	case "dirsync":
		return unix.MS_DIRSYNC, false, true
	case "mand":
		return unix.MS_MANDLOCK, false, true
	case "nomand":
		return unix.MS_MANDLOCK, true, true
	case "noatime":
		return unix.MS_NOATIME, false, true
	case "atime":
		return unix.MS_NOATIME, true, true
	case "nodiratime":
		return unix.MS_NODIRATIME, false, true
	case "diratime":
		return unix.MS_NODIRATIME, true, true
	case "relatime":
		return unix.MS_RELATIME, false, true
	case "norelatime":
		return unix.MS_RELATIME, true, true
	case "strictatime":
		return unix.MS_STRICTATIME, false, true
	case "nostrictatime":
		return unix.MS_STRICTATIME, true, true
	case "iversion":
		return unix.MS_I_VERSION, false, true
	case "noiversion":
		return unix.MS_I_VERSION, true, true
	case "silent":
		return unix.MS_SILENT, false, true
	case "loud":
		return unix.MS_SILENT, true, true
	}
	return 0, false, false
}

func propagation(option string) (uintptr, bool) {
	switch option {
	case "private":
		return unix.MS_PRIVATE, true
	case "rprivate":
		return unix.MS_PRIVATE | unix.MS_REC, true
	case "shared":
		return unix.MS_SHARED, true
	case "rshared":
		return unix.MS_SHARED | unix.MS_REC, true
	case "slave":
		return unix.MS_SLAVE, true
	case "rslave":
		return unix.MS_SLAVE | unix.MS_REC, true
	case "unbindable":
		return unix.MS_UNBINDABLE, true
	case "runbindable":
		return unix.MS_UNBINDABLE | unix.MS_REC, true
	}
	return 0, false
}

func parseOptions(list []string) (*options, error) {
	o := new(options)
	for _, option := range list {
		if bit, clear, known := flag(option); known {
			if clear {
				o.flags &^= bit
			} else {
				o.flags |= bit
			}
			continue
		}
		if p, known := propagation(option); known {
			o.propagation = append(o.propagation, p)
			continue
		}
		var err error
		switch {
		case option == "loop":
			o.loop = true
		case strings.HasPrefix(option, "uidmap="):
			o.uidMap, err = parseIDMap(option[len("uidmap="):])
		case strings.HasPrefix(option, "gidmap="):
			o.gidMap, err = parseIDMap(option[len("gidmap="):])
		case strings.HasPrefix(option, "X-containerd."):
			// These are for containerd's own mount manager; here they would silently be
			// without effect, or break the file system's own parser.
			err = fmt.Errorf("is for containerd itself, which this version does not act on")
		default:
			o.data = append(o.data, option)
		}
		if err != nil {
			return nil, fmt.Errorf("option %q: %w", option, err)
		}
	}
	if (o.uidMap == nil) != (o.gidMap == nil) {
		return nil, fmt.Errorf("options uidmap and gidmap are of use only together")
	}
	return o, nil
}

// parseIDMap reads container:host:size triples with commas between them. One of size 0 is refused
// here, where its text is at hand: the kernel's answer to such a map is a bare EINVAL.
func parseIDMap(text string) ([]syscall.SysProcIDMap, error) {
	var out []syscall.SysProcIDMap
	for triple := range strings.SplitSeq(text, ",") {
		parts := strings.Split(triple, ":")
		if len(parts) != 3 {
			return nil, fmt.Errorf("%q is not container:host:size", triple)
		}
		var n [3]int
		for i, p := range parts {
			v, err := strconv.ParseUint(p, 10, 32)
			if err != nil {
				return nil, fmt.Errorf("%q in %q is not an id", p, triple)
			}
			n[i] = int(v)
		}
		if n[2] == 0 {
			return nil, fmt.Errorf("%q maps no id: its size is 0", triple)
		}
		out = append(out, syscall.SysProcIDMap{ContainerID: n[0], HostID: n[1], Size: n[2]})
	}
	return out, nil
}
