package neighbour

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// rights are what a process of a container may have at most, in the host's ids, by its config
// alone.
type rights struct {
	uid, gid     uint64
	groups       []uint64
	caps         map[string]uint64 // by the name of the set in /proc/PID/status
	nnp, seccomp bool
	namespaces   []string // those that are not the host's
}

func rightsOf(s *specs.Spec, p *specs.Process) rights {
	r := rights{
		uid: mapped(s.Linux.UIDMappings, p.User.UID), gid: mapped(s.Linux.GIDMappings, p.User.GID),
		caps: map[string]uint64{}, nnp: p.NoNewPrivileges, seccomp: s.Linux.Seccomp != nil,
	}
	r.groups = append(r.groups, r.gid) // which it is in anyway
	for _, gid := range p.User.AdditionalGids {
		r.groups = append(r.groups, mapped(s.Linux.GIDMappings, gid))
	}
	if c := p.Capabilities; c != nil {
		r.caps["Bnd"], r.caps["Inh"], r.caps["Amb"] = mask(c.Bounding), mask(c.Inheritable), mask(c.Ambient)
	}
	// What execve(2) leaves: root has all of its bounding set again, all others what is ambient.
	r.caps["Prm"] = r.caps["Amb"]
	if p.User.UID == 0 {
		r.caps["Prm"] |= r.caps["Bnd"] | r.caps["Inh"]
	}
	r.caps["Eff"] = r.caps["Prm"]
	files := map[specs.LinuxNamespaceType]string{specs.MountNamespace: "mnt", specs.NetworkNamespace: "net"}
	for _, ns := range s.Linux.Namespaces {
		name, other := files[ns.Type]
		if !other {
			name = string(ns.Type)
		}
		r.namespaces = append(r.namespaces, name)
	}
	return r
}

func mapped(maps []specs.LinuxIDMapping, id uint32) uint64 {
	for _, m := range maps {
		if id >= m.ContainerID && id-m.ContainerID < m.Size {
			return uint64(m.HostID) + uint64(id-m.ContainerID)
		}
	}
	return uint64(id)
}

// capabilityNames are the capabilities by number, capabilities(7), for as many as the shapes need.
var capabilityNames = strings.Fields(`CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE
	NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE
	SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP`)

func mask(names []string) (set uint64) {
	for _, name := range names {
		number := slices.Index(capabilityNames, strings.TrimPrefix(name, "CAP_"))
		if number < 0 {
			panic("no number for " + name)
		}
		set |= 1 << number
	}
	return set
}

// exceeded compares the fields of a /proc/PID/status with them, and names what is more.
func (r *rights) exceeded(status map[string]string) (more []string) {
	for _, set := range []string{"Inh", "Prm", "Eff", "Bnd", "Amb"} {
		has, err := strconv.ParseUint(status["Cap"+set], 16, 64)
		if err != nil || has&^r.caps[set] != 0 {
			more = append(more, fmt.Sprintf("capabilities %s %s, at most %x", set, status["Cap"+set], r.caps[set]))
		}
	}
	if r.nnp && status["NoNewPrivs"] != "1" {
		more = append(more, "no_new_privs is not set")
	}
	if r.seccomp && status["Seccomp"] != "2" {
		more = append(more, "no seccomp filter")
	}
	return more
}

// others compares the ids, which /proc tells in the reader's own numbers: it is for the status that
// the host reads.
func (r *rights) others(status map[string]string) (more []string) {
	for _, id := range []struct {
		field string
		want  uint64
	}{{"Uid", r.uid}, {"Gid", r.gid}} {
		for _, word := range strings.Fields(status[id.field]) {
			if word != strconv.FormatUint(id.want, 10) {
				more = append(more, fmt.Sprintf("%s %s, want %d", id.field, status[id.field], id.want))
				break
			}
		}
	}
	for _, word := range strings.Fields(status["Groups"]) {
		if gid, err := strconv.ParseUint(word, 10, 64); err != nil || !slices.Contains(r.groups, gid) {
			more = append(more, "group "+word)
		}
	}
	return more
}
