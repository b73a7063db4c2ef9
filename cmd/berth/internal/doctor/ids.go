package doctor

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/internal/proc/mountinfo"
	"golang.org/x/sys/unix"
)

// user is the name to put into commands, or the number of one without a name.
func (m *Machine) user() string {
	if m.Name != "" {
		return m.Name
	}
	return strconv.Itoa(m.UID)
}

func (m *Machine) userName() string {
	for line := range strings.Lines(m.read("etc/passwd")) {
		if fields := strings.Split(line, ":"); len(fields) > 2 && fields[2] == strconv.Itoa(m.UID) {
			return fields[0]
		}
	}
	return ""
}

// enough ids for an image: those of its users and of nobody (65534).
const enoughIDs = 65536

// subordinateIDs looks for the ids that a user may map besides their own
// (subuid(5)).
func subordinateIDs(m *Machine) []Finding {
	if m.UID == 0 {
		return nil
	}
	if sources := m.nssSources("subid"); sources != "" && sources != "files" {
		return []Finding{{Check: "subordinate ids", For: User, State: Note, Found: "come from " + sources + " (nsswitch.conf), which getsubids " + m.user() + " tells"}}
	}
	uids, freeUID := m.subordinate("etc/subuid")
	gids, freeGID := m.subordinate("etc/subgid")
	f := Finding{Check: "subordinate ids", For: User, Found: strconv.FormatUint(uids, 10) + " uids, " + strconv.FormatUint(gids, 10) + " gids"}
	if uids >= enoughIDs && gids >= enoughIDs {
		return []Finding{f}
	}
	f.State, f.Without = Gap, "a user's container has one id only: images with several users fail"
	first := max(freeUID, freeGID)
	ids := strconv.FormatUint(first, 10) + "-" + strconv.FormatUint(first+enoughIDs-1, 10)
	command := "usermod"
	if uids < enoughIDs {
		command += " --add-subuids " + ids
	}
	if gids < enoughIDs {
		command += " --add-subgids " + ids
	}
	f.Fix = []Fix{m.sudo(command + " " + m.user())}
	return []Finding{f}
}

// subordinate counts the user's ids in a file, and finds the first id behind
// all that is given away there.
func (m *Machine) subordinate(file string) (count, free uint64) {
	free = 100000 // where useradd begins (SUB_UID_MIN of login.defs)
	for line := range strings.Lines(m.read(file)) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) != 3 {
			continue
		}
		start, err1 := strconv.ParseUint(fields[1], 10, 32)
		size, err2 := strconv.ParseUint(fields[2], 10, 32)
		if err1 != nil || err2 != nil {
			continue
		}
		free = max(free, start+size)
		if fields[0] == m.Name && m.Name != "" || fields[0] == strconv.Itoa(m.UID) {
			count += size
		}
	}
	return count, free
}

// nssSources tells where a database comes from (nsswitch.conf(5)).
func (m *Machine) nssSources(database string) string {
	for line := range strings.Lines(m.read("etc/nsswitch.conf")) {
		if sources, ok := strings.CutPrefix(strings.TrimSpace(line), database+":"); ok {
			return strings.Join(strings.Fields(sources), " ")
		}
	}
	return ""
}

// mapPrograms looks for the programs that write the maps of users' namespaces.
func mapPrograms(m *Machine) []Finding {
	var findings []Finding
	for _, p := range [...]struct {
		name       string
		capability uint
		setcap     string
	}{{"newuidmap", unix.CAP_SETUID, "cap_setuid+ep"}, {"newgidmap", unix.CAP_SETGID, "cap_setgid+ep"}} {
		f := Finding{Check: p.name, For: User}
		path := m.find(p.name)
		if path == "" {
			f.State, f.Found, f.Without = Gap, "not installed", "a user's container has one id only: images with several users fail"
			f.Fix = []Fix{m.install("uidmap", "shadow-utils", "shadow", "shadow", "shadow-uidmap")}
			findings = append(findings, f)
			continue
		}
		f.Found = path
		if why := m.powerless(path, p.capability); why != "" {
			f.State, f.Found = Gap, path+" "+why
			f.Without = "a user's container has one id only: images with several users fail"
			f.Fix = []Fix{m.sudo("setcap " + p.setcap + " " + path)}
			if strings.Contains(why, "nosuid") {
				f.Fix = []Fix{m.sudo("mount -o remount,suid " + m.mountOf(path))}
			}
		}
		findings = append(findings, f)
	}
	return findings
}

// find looks for a program where users' paths lead.
func (m *Machine) find(name string) string {
	for _, dir := range append(filepath.SplitList(m.Env("PATH")), "/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin") {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(m.path(path)); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// powerless says why a program would run without the capability.
func (m *Machine) powerless(path string, capability uint) string {
	var fs unix.Statfs_t
	if unix.Statfs(m.path(path), &fs) == nil && fs.Flags&unix.ST_NOSUID != 0 && m.Root == "" {
		return "lies on a file system that is mounted nosuid"
	}
	var st unix.Stat_t
	if unix.Stat(m.path(path), &st) == nil && st.Mode&unix.S_ISUID != 0 && st.Uid == 0 {
		return ""
	}
	// struct vfs_cap_data of <linux/capability.h>: a word of version and flags,
	// then permitted and inheritable, in little endian on every machine.
	var data [24]byte
	if n, err := unix.Getxattr(m.path(path), "security.capability", data[:]); err == nil && n >= 8 {
		if binary.LittleEndian.Uint32(data[4:])&(1<<capability) != 0 {
			return ""
		}
	}
	return "is neither setuid root nor has the file capability"
}

// mountOf is the mount point that a path lies on; "" where nothing tells.
func (m *Machine) mountOf(path string) string {
	at, _ := mountinfo.Holding(mountinfo.Parse(m.read("proc/self/mountinfo")), path)
	return at.Point
}
