package device

import (
	"strconv"
	"strings"
)

// Allowed is one element of systemd's DeviceAllow, of D-Bus type (ss).
type Allowed struct {
	Path   string
	Access string
}

// Systemd gives the policy as unit properties, DevicePolicy and DeviceAllow.
// procDevices is the content of /proc/devices, systemd the version, 0 for
// unknown.
//
// DeviceAllow only ever allows, so it cannot say everything that a policy can.
// What it gives is never less than the policy, so that systemd's own filter,
// which comes back at each daemon-reload, does not cut the container off. The
// filter of this package stands beside it and denies the rest.
func (p Policy) Systemd(procDevices string, systemd int) (devicePolicy string, allow []Allowed) {
	if p.AllowsAll() {
		return "auto", nil
	}
	groups := parseGroups(procDevices)
	for _, r := range p.rules {
		if !r.Allow {
			continue
		}
		if r.Type != Block {
			allow = mergeAllowed(allow, groupName(r, "char", groups.char, systemd), r.Access)
		}
		if r.Type != Char {
			allow = mergeAllowed(allow, groupName(r, "block", groups.block, systemd), r.Access)
		}
	}
	return "strict", allow
}

// numbersSince is the systemd that takes a number for the name of a group, and
// /dev/char/MAJ:MIN without a node that is really there.
const numbersSince = 240

// groupName is the least that systemd can be told to allow for a rule.
func groupName(r Rule, class string, known []group, systemd int) string {
	if r.Major == Any {
		return class + "-*" // there is no name for a minor of all majors
	}
	major := strconv.FormatInt(r.Major, 10)
	if r.Minor != Any {
		return "/dev/" + class + "/" + major + ":" + strconv.FormatInt(r.Minor, 10)
	}
	named := ""
	for _, g := range known {
		if g.major == r.Major {
			named = g.name
		}
	}
	majors := 0
	for _, g := range known {
		if g.name == named {
			majors++
		}
	}
	// A name that several majors have ("sd" has 16) or that systemd would
	// take for a pattern allows more than was asked for.
	exact := majors == 1 && !strings.ContainsAny(named, `*?[\`)
	switch {
	case exact:
		return class + "-" + named
	case systemd == 0 || systemd >= numbersSince:
		return class + "-" + major
	case majors > 0:
		return class + "-" + named
	}
	// No driver has the major, so there is nothing that an older systemd could
	// find, and the container nothing to open.
	return ""
}

func mergeAllowed(allow []Allowed, path string, access Access) []Allowed {
	if path == "" {
		return allow
	}
	for i := range allow {
		if allow[i].Path == path {
			allow[i].Access = (parseAccess(allow[i].Access) | access).String()
			return allow
		}
	}
	return append(allow, Allowed{path, access.String()})
}

func parseAccess(s string) Access {
	var a Access
	for _, one := range [...]Access{Read, Write, Mknod} {
		if strings.Contains(s, one.String()) {
			a |= one
		}
	}
	return a
}

// group is a line of /proc/devices.
type group struct {
	major int64
	name  string
}

type groups struct{ char, block []group }

func parseGroups(procDevices string) groups {
	var g groups
	into := &g.char
	for line := range strings.SplitSeq(procDevices, "\n") {
		switch strings.TrimSpace(line) {
		case "Character devices:":
			into = &g.char
			continue
		case "Block devices:":
			into = &g.block
			continue
		}
		number, name, ok := strings.Cut(strings.TrimSpace(line), " ")
		major, err := strconv.ParseInt(number, 10, 64)
		if ok && err == nil {
			*into = append(*into, group{major, name})
		}
	}
	return g
}
