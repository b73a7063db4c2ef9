package spec

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/internal/caps"
)

func (c *checker) process(p place, process *specs.Process) {
	c.args(p.at("args"), process.Args)
	c.absolute(p.at("cwd"), process.Cwd)
	c.env(p.at("env"), process.Env)
	c.user(p.at("user"), &process.User)
	if size := process.ConsoleSize; size != nil && process.Terminal { // without a terminal it is to be ignored
		box := p.at("consoleSize")
		// struct winsize has 16 bits for each, see ioctl_tty(2).
		for _, side := range [2]struct {
			key   string
			value uint
		}{{"height", size.Height}, {"width", size.Width}} {
			if side.value > math.MaxUint16 {
				c.bad(box.at(side.key), "expected 0 to 65535, found "+strconv.FormatUint(uint64(side.value), 10))
			}
		}
	}
	if process.Capabilities != nil {
		c.capabilities(p.at("capabilities"), process.Capabilities)
	}
	c.rlimits(p.at("rlimits"), process.Rlimits)
	c.line(p.at("apparmorProfile"), process.ApparmorProfile)
	c.line(p.at("selinuxLabel"), process.SelinuxLabel)
	if v := process.OOMScoreAdj; v != nil {
		c.within(p.at("oomScoreAdj"), int64(*v), -1000, 1000)
	}
	if process.Scheduler != nil {
		c.scheduler(p.at("scheduler"), process.Scheduler)
	}
	if process.IOPriority != nil {
		c.ioPriority(p.at("ioPriority"), process.IOPriority)
	}
	if affinity := process.ExecCPUAffinity; affinity != nil {
		a := p.at("execCPUAffinity")
		c.cpuList(a.at("initial"), affinity.Initial)
		c.cpuList(a.at("final"), affinity.Final)
	}
}

func (c *checker) args(p place, args []string) {
	switch {
	case len(args) == 0:
		c.hint(p, "is required and must have at least one entry", "the first one is the program to run")
	case args[0] == "":
		c.bad(p.nth(0), "is empty, expected the program to run")
	}
	c.texts(p, args)
}

func (c *checker) env(p place, env []string) {
	for i, entry := range env {
		switch eq := strings.IndexByte(entry, '='); {
		case eq < 0:
			c.bad(p.nth(i), "expected NAME=VALUE, found "+quote(entry))
		case eq == 0:
			c.bad(p.nth(i), "has an empty name before the equals sign: "+quote(entry))
		default:
			c.text(p.nth(i), entry)
		}
	}
}

// noID is (uid_t)-1: "leave it as it is" to the kernel, never a user or group.
const noID = math.MaxUint32

// mostGroups is NGROUPS_MAX, see setgroups(2).
const mostGroups = 65536

func (c *checker) user(p place, user *specs.User) {
	if user.UID == noID {
		c.bad(p.at("uid"), "4294967295 is not a user: the kernel reads it as -1")
	}
	if user.GID == noID {
		c.bad(p.at("gid"), "4294967295 is not a group: the kernel reads it as -1")
	}
	if user.Umask != nil && *user.Umask > 0o777 {
		c.hint(p.at("umask"), "expected 0 to 511, found "+strconv.FormatUint(uint64(*user.Umask), 10),
			"it is decimal here: 18 is 022")
	}
	groups := p.at("additionalGids")
	if len(user.AdditionalGids) > mostGroups {
		c.bad(groups, "has more than 65536 entries, the kernel's limit")
		return
	}
	for i, gid := range user.AdditionalGids {
		if gid == noID {
			c.bad(groups.nth(i), "4294967295 is not a group: the kernel reads it as -1")
		}
	}
}

// capabilities warns only: what isn't known can't be granted, and the OCI spec
// wants a warning then, not an error.
func (c *checker) capabilities(p place, sets *specs.LinuxCapabilities) {
	c.knownCapabilities(p.at("bounding"), sets.Bounding)
	c.knownCapabilities(p.at("effective"), sets.Effective)
	c.knownCapabilities(p.at("inheritable"), sets.Inheritable)
	c.knownCapabilities(p.at("permitted"), sets.Permitted)
	c.knownCapabilities(p.at("ambient"), sets.Ambient)

	permitted, _ := caps.SetOf(sets.Permitted)
	inheritable, _ := caps.SetOf(sets.Inheritable)
	// capset(2) refuses these, and with it the config: runc and crun do too.
	for i, name := range sets.Effective {
		if n, known := caps.Number(name); known && permitted&(1<<n) == 0 {
			effective := p.at("effective")
			c.hint(effective.nth(i), name+" can't be effective without being permitted", "add it to permitted")
		}
	}
	// Buildah before 1.29 empties the inheritable set (CVE-2022-24769) and leaves the ambient one
	// as it was, for each step of a build: it means no ambient ones, and a warning a step would
	// be noise.
	if len(sets.Inheritable) > 0 {
		c.raisable(p.at("ambient"), sets.Ambient, permitted&inheritable)
	}
}

func (c *checker) knownCapabilities(list place, names []string) {
	for i, name := range names {
		if _, known := caps.Number(name); !known {
			c.warn(list.nth(i), "unknown capability "+quote(name)+" is left out")
		}
	}
}

// raisable warns of what PR_CAP_AMBIENT_RAISE would refuse.
func (c *checker) raisable(list place, names []string, allowed caps.Set) {
	for i, name := range names {
		if n, known := caps.Number(name); known && allowed&(1<<n) == 0 {
			c.warn(list.nth(i), name+" can't be ambient without being permitted and inheritable: it is left out")
		}
	}
}

func (c *checker) rlimits(list place, rlimits []specs.POSIXRlimit) {
	for i := range rlimits {
		p, limit := list.nth(i), &rlimits[i]
		if !slices.Contains(Rlimits[:], limit.Type) {
			c.hint(p.at("type"), "unknown limit "+quote(limit.Type), "the names are in getrlimit(2), like RLIMIT_NOFILE")
		} else {
			for j := range i {
				if rlimits[j].Type == limit.Type {
					c.bad(p.at("type"), limit.Type+" is set twice")
					break
				}
			}
		}
		if limit.Soft > limit.Hard {
			c.bad(p.at("soft"), "is greater than the hard limit: "+strconv.FormatUint(limit.Soft, 10)+
				" > "+strconv.FormatUint(limit.Hard, 10))
		}
	}
}

// Rlimits are the limits of setrlimit(2), by their numbers (asm-generic/resource.h).
var Rlimits = [...]string{"RLIMIT_CPU", "RLIMIT_FSIZE", "RLIMIT_DATA", "RLIMIT_STACK", "RLIMIT_CORE", "RLIMIT_RSS",
	"RLIMIT_NPROC", "RLIMIT_NOFILE", "RLIMIT_MEMLOCK", "RLIMIT_AS", "RLIMIT_LOCKS", "RLIMIT_SIGPENDING",
	"RLIMIT_MSGQUEUE", "RLIMIT_NICE", "RLIMIT_RTPRIO", "RLIMIT_RTTIME"}
