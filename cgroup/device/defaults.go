package device

import (
	"strconv"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// ForContainer gives all rules of a container: what its config lists as nodes
// (linux.devices), then the config's own rules (linux.resources.devices), then the
// Defaults. So a config without rules has the use of its nodes and of the Defaults, and
// of nothing else; and one that denies everything first has the use of a node only where
// a rule of its own allows it. at has the JSON pointer of each rule, "" for the Defaults.
func ForContainer(nodes []specs.LinuxDevice, rules []specs.LinuxDeviceCgroup) (all []specs.LinuxDeviceCgroup, at []string) {
	defaults := Defaults()
	all = make([]specs.LinuxDeviceCgroup, 0, len(nodes)+len(rules)+len(defaults))
	at = make([]string, 0, cap(all))
	for i := range nodes {
		typ := nodes[i].Type
		switch typ {
		case "p":
			continue // a fifo is not a device
		case "u":
			typ = "c" // mknod(1): an unbuffered character device
		}
		all = append(all, allow(typ, nodes[i].Major, nodes[i].Minor, "rwm"))
		at = append(at, "/linux/devices/"+strconv.Itoa(i))
	}
	for i := range rules {
		at = append(at, "/linux/resources/devices/"+strconv.Itoa(i))
	}
	at = at[:len(all)+len(rules)+len(defaults)]
	return append(append(all, rules...), defaults...), at
}

// Defaults are the rules for what every container must be able to use, to be
// put behind those of the config: the devices that the spec makes a runtime
// supply, the terminals of the container's own devpts, mknod of anything,
// which gives no access to what is made, and tun: VPN programs in containers
// rely on peers allowing it, and it is of use only to who has CAP_NET_ADMIN.
// A container's /dev/console is its terminal, of devpts: by the console's own
// number a container that has the host's /dev would read what is typed there.
func Defaults() []specs.LinuxDeviceCgroup {
	rules := []specs.LinuxDeviceCgroup{
		allow("c", Any, Any, "m"),
		allow("b", Any, Any, "m"),
	}
	for _, d := range [...]struct{ major, minor int64 }{
		{1, 3},     // /dev/null
		{1, 5},     // /dev/zero
		{1, 7},     // /dev/full
		{1, 8},     // /dev/random
		{1, 9},     // /dev/urandom
		{5, 0},     // /dev/tty
		{5, 2},     // /dev/ptmx
		{136, Any}, // /dev/pts/*
		{10, 200},  // /dev/net/tun
	} {
		rules = append(rules, allow("c", d.major, d.minor, "rwm"))
	}
	return rules
}

func allow(typ string, major, minor int64, access string) specs.LinuxDeviceCgroup {
	return specs.LinuxDeviceCgroup{Allow: true, Type: typ, Major: &major, Minor: &minor, Access: access}
}
