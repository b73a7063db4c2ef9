package spec

import (
	"strconv"

	"github.com/opencontainers/runtime-spec/specs-go"
)

func (c *checker) linux(p place, linux *specs.Linux) {
	c.namespaces(p.at("namespaces"), linux.Namespaces)
	c.idMappings(p, linux)
	c.timeOffsets(p.at("timeOffsets"), linux)
	c.sysctls(p.at("sysctl"), linux)
	c.devices(p.at("devices"), linux.Devices)
	c.netDevices(p.at("netDevices"), linux)
	c.hiddenPaths(p.at("maskedPaths"), linux.MaskedPaths, linux)
	c.hiddenPaths(p.at("readonlyPaths"), linux.ReadonlyPaths, linux)
	c.line(p.at("cgroupsPath"), linux.CgroupsPath) // a name with a newline would make /proc/PID/cgroup ambiguous: the kernel takes none
	c.line(p.at("mountLabel"), linux.MountLabel)
	c.rootfsPropagation(p.at("rootfsPropagation"), linux.RootfsPropagation)
	if linux.Resources != nil {
		c.resources(p.at("resources"), linux.Resources)
	}
	if linux.Seccomp != nil {
		c.seccomp(p.at("seccomp"), linux.Seccomp)
	}
	if linux.IntelRdt != nil {
		c.intelRdt(p.at("intelRdt"), linux.IntelRdt)
	}
	if linux.MemoryPolicy != nil {
		c.memoryPolicy(p.at("memoryPolicy"), linux.MemoryPolicy)
	}
	if linux.Personality != nil {
		c.personality(p.at("personality"), linux.Personality)
	}
}

// has tells whether the container gets a namespace of its own of that type, or
// joins one.
func has(linux *specs.Linux, t specs.LinuxNamespaceType) bool {
	for i := range linux.Namespaces {
		if linux.Namespaces[i].Type == t {
			return true
		}
	}
	return false
}

// joins tells whether the container joins an existing namespace of that type.
func joins(linux *specs.Linux, t specs.LinuxNamespaceType) bool {
	for i := range linux.Namespaces {
		if n := &linux.Namespaces[i]; n.Type == t && n.Path != "" {
			return true
		}
	}
	return false
}

func (c *checker) namespaces(list place, namespaces []specs.LinuxNamespace) {
	for i := range namespaces {
		p, n := list.nth(i), &namespaces[i]
		switch n.Type {
		case specs.PIDNamespace, specs.NetworkNamespace, specs.MountNamespace, specs.IPCNamespace,
			specs.UTSNamespace, specs.UserNamespace, specs.CgroupNamespace, specs.TimeNamespace:
			for j := range i {
				if namespaces[j].Type == n.Type {
					c.bad(p.at("type"), "the "+string(n.Type)+" namespace is listed twice")
					break
				}
			}
		default:
			c.bad(p.at("type"), "unknown namespace "+quote(string(n.Type))+", "+
				oneOf("pid", "network", "mount", "ipc", "uts", "user", "cgroup", "time"))
		}
		if n.Path != "" {
			c.absolute(p.at("path"), n.Path)
		}
	}
}

// idMappings checks the mappings of the container's user namespace.
func (c *checker) idMappings(p place, linux *specs.Linux) {
	for _, m := range [2]struct {
		key      string
		mappings []specs.LinuxIDMapping
	}{{"uidMappings", linux.UIDMappings}, {"gidMappings", linux.GIDMappings}} {
		list := p.at(m.key)
		if len(m.mappings) > 0 && !has(linux, specs.UserNamespace) {
			c.warn(list, `maps nothing without a user namespace (add {"type": "user"} to /linux/namespaces)`)
			continue
		}
		c.mappings(list, m.mappings)
	}
}

// mostMappings is UID_GID_MAP_MAX_EXTENTS, of Linux 4.15 and later.
const mostMappings = 340

// mappings checks one map by the kernel's rules (map_write): no empty extent,
// none that reaches 4294967295, no overlap on either side.
func (c *checker) mappings(list place, mappings []specs.LinuxIDMapping) {
	if len(mappings) > mostMappings {
		c.bad(list, "has "+strconv.Itoa(len(mappings))+" entries, the kernel takes 340")
		return
	}
	for i := range mappings {
		p, m := list.nth(i), &mappings[i]
		switch {
		case m.Size == 0:
			c.bad(p.at("size"), "must be at least 1")
			continue
		case m.ContainerID+m.Size < m.ContainerID || m.ContainerID+m.Size == 0:
			c.bad(p.at("containerID"), "with size "+strconv.FormatUint(uint64(m.Size), 10)+" it ends beyond 4294967294, the last id")
			continue
		case m.HostID+m.Size < m.HostID || m.HostID+m.Size == 0:
			c.bad(p.at("hostID"), "with size "+strconv.FormatUint(uint64(m.Size), 10)+" it ends beyond 4294967294, the last id")
			continue
		}
		for j := range i {
			o := &mappings[j]
			if overlap(m.ContainerID, m.Size, o.ContainerID, o.Size) {
				c.bad(p.at("containerID"), "overlaps the ids of entry "+strconv.Itoa(j))
			}
			if overlap(m.HostID, m.Size, o.HostID, o.Size) {
				c.bad(p.at("hostID"), "overlaps the ids of entry "+strconv.Itoa(j))
			}
		}
	}
}

func overlap(a, aSize, b, bSize uint32) bool {
	return uint64(a) < uint64(b)+uint64(bSize) && uint64(b) < uint64(a)+uint64(aSize)
}

// mapped checks that the process's ids exist in a user namespace that is to be
// made: setuid(2) to an id without mapping fails in the end.
func (c *checker) mapped(top place, process *specs.Process, linux *specs.Linux) {
	if process == nil || !has(linux, specs.UserNamespace) || joins(linux, specs.UserNamespace) {
		return
	}
	p := top.at("process")
	user := p.at("user")
	c.mappedID(user.at("uid"), process.User.UID, linux.UIDMappings, "/linux/uidMappings")
	c.mappedID(user.at("gid"), process.User.GID, linux.GIDMappings, "/linux/gidMappings")
	groups := user.at("additionalGids")
	for i, gid := range process.User.AdditionalGids {
		c.mappedID(groups.nth(i), gid, linux.GIDMappings, "/linux/gidMappings")
	}
}

// mappedID leaves a missing map alone: rootless engines make one from
// /etc/subuid, which only the host knows.
func (c *checker) mappedID(p place, id uint32, mappings []specs.LinuxIDMapping, where string) {
	if len(mappings) == 0 || id == noID {
		return
	}
	for i := range mappings {
		if m := &mappings[i]; id >= m.ContainerID && id-m.ContainerID < m.Size {
			return
		}
	}
	c.bad(p, strconv.FormatUint(uint64(id), 10)+" is not mapped by "+where)
}

// timeOffsets checks the offsets of a time namespace, see time_namespaces(7).
func (c *checker) timeOffsets(offsets place, linux *specs.Linux) {
	if len(linux.TimeOffsets) == 0 {
		return
	}
	if !has(linux, specs.TimeNamespace) {
		c.hint(offsets, "needs a time namespace", `add {"type": "time"} to /linux/namespaces`)
	} else if joins(linux, specs.TimeNamespace) {
		c.bad(offsets, "can't be set in an existing time namespace: it has processes already")
	}
	for _, clock := range sortedKeys(linux.TimeOffsets) {
		offset := linux.TimeOffsets[clock]
		p := offsets.at(clock)
		if clock != "monotonic" && clock != "boottime" {
			c.bad(p, "unknown clock "+quote(clock)+", expected monotonic or boottime")
			continue
		}
		if offset.Nanosecs > 999_999_999 {
			c.bad(p.at("nanosecs"), "expected 0 to 999999999, found "+strconv.FormatUint(uint64(offset.Nanosecs), 10))
		}
		// Half of KTIME_SEC_MAX, beyond which the kernel answers ERANGE.
		c.within(p.at("secs"), offset.Secs, -4611686018, 4611686018)
	}
}

// hiddenPaths checks the masked or the read-only paths.
func (c *checker) hiddenPaths(list place, paths []string, linux *specs.Linux) {
	if len(paths) > 0 && !has(linux, specs.MountNamespace) {
		c.hint(list, "needs a mount namespace: the paths would change for the host", `add {"type": "mount"} to /linux/namespaces`)
	}
	for i, path := range paths {
		c.absolute(list.nth(i), path)
	}
}

// rootfsPropagation takes the recursive forms too, which Docker and Podman
// write.
func (c *checker) rootfsPropagation(p place, mode string) {
	switch mode {
	case "", "shared", "slave", "private", "unbindable", "rshared", "rslave", "rprivate", "runbindable":
	default:
		c.bad(p, "unknown propagation "+quote(mode)+", "+oneOf("shared", "slave", "private", "unbindable"))
	}
}

func (c *checker) personality(p place, personality *specs.LinuxPersonality) {
	switch personality.Domain {
	case specs.PerLinux, specs.PerLinux32:
	default:
		c.bad(p.at("domain"), "unknown domain "+quote(string(personality.Domain))+", expected LINUX or LINUX32")
	}
	if len(personality.Flags) > 0 {
		c.warn(p.at("flags"), "no flags are defined: they are left out")
	}
}
