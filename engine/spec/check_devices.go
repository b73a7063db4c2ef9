package spec

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// The kernel's device numbers have 12 and 20 bits, see MINORBITS.
const (
	mostMajor = 1<<12 - 1
	mostMinor = 1<<20 - 1
)

func (c *checker) devices(list place, devices []specs.LinuxDevice) {
	for i := range devices {
		p, d := list.nth(i), &devices[i]
		c.absolute(p.at("path"), d.Path)
		switch d.Type {
		case "c", "b", "u":
			c.within(p.at("major"), d.Major, 0, mostMajor)
			c.within(p.at("minor"), d.Minor, 0, mostMinor)
		case "p": // a pipe has no numbers
		default:
			c.bad(p.at("type"), "unknown type "+quote(d.Type)+", "+oneOf("c", "b", "u", "p"))
		}
		// Older engines write the whole st_mode, with the bits of the file's type.
		if d.FileMode != nil && *d.FileMode > 0o177777 {
			c.hint(p.at("fileMode"), "expected file mode bits, found "+strconv.FormatUint(uint64(*d.FileMode), 10),
				"it is decimal here: 438 is 0666")
		}
		if d.UID != nil && *d.UID == noID {
			c.bad(p.at("uid"), "4294967295 is not a user: the kernel reads it as -1")
		}
		if d.GID != nil && *d.GID == noID {
			c.bad(p.at("gid"), "4294967295 is not a group: the kernel reads it as -1")
		}
		for j := range i {
			same := sameNode(&devices[j], d)
			if devices[j].Path == d.Path && !same {
				c.warn(p.at("path"), "is another device than in entry "+strconv.Itoa(j)+", which is the one that is made")
				break
			}
			if same && d.Type != "p" {
				c.warn(p, "is the same device as entry "+strconv.Itoa(j))
				break
			}
		}
	}
}

func sameNode(a, b *specs.LinuxDevice) bool {
	kind := func(d *specs.LinuxDevice) string {
		if d.Type == "u" { // an unbuffered character device is a character device to Linux
			return "c"
		}
		return d.Type
	}
	return kind(a) == kind(b) && (a.Type == "p" || a.Major == b.Major && a.Minor == b.Minor)
}

// netDevices checks the interfaces that move into the container.
func (c *checker) netDevices(all place, linux *specs.Linux) {
	if len(linux.NetDevices) == 0 {
		return
	}
	if !has(linux, specs.NetworkNamespace) {
		c.hint(all, "needs a network namespace to move the interfaces to", `add {"type": "network"} to /linux/namespaces`)
	}
	taken := make(map[string]string, len(linux.NetDevices)) // name in the container: name on the host
	for _, name := range sortedKeys(linux.NetDevices) {
		p := all.at(name)
		if why := interfaceName(name); why != "" {
			c.bad(p, why)
		} else if name == "lo" {
			c.bad(p, "can't be moved: each network namespace has its own")
		}
		inside := linux.NetDevices[name].Name
		if inside == "" {
			inside = name
		} else if why := interfaceName(strings.Replace(inside, "%d", "0", 1)); why != "" {
			c.bad(p.at("name"), why)
		}
		if other, ok := taken[inside]; ok && !strings.Contains(inside, "%d") {
			c.bad(p.at("name"), "is the name of "+quote(other)+" too: "+quote(inside))
		}
		taken[inside] = name
	}
}

// interfaceName says what is wrong with an interface's name, by the kernel's
// dev_valid_name.
func interfaceName(name string) string {
	switch {
	case name == "":
		return "an interface's name is empty"
	case len(name) > 15:
		return quote(name) + " is longer than 15 bytes, the kernel's limit for an interface's name"
	case name == "." || name == "..":
		return quote(name) + " is not a name for an interface"
	case strings.ContainsAny(name, "/:%\x00") || strings.IndexFunc(name, unicode.IsSpace) >= 0:
		return "an interface's name has no slash, colon, percent sign or white space, found " + quote(name)
	}
	return ""
}
