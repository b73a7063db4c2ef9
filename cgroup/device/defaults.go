package device

import (
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// WithDefaults gives the rules of a config with the Defaults behind them.
func WithDefaults(rules []specs.LinuxDeviceCgroup) []specs.LinuxDeviceCgroup {
	return append(slices.Clip(rules), Defaults()...)
}

// Defaults are the rules for what every container must be able to use, to be
// put behind those of the config: the devices that the spec makes a runtime
// supply, the terminals of the container's own devpts, mknod of anything,
// which gives no access to what is made, and tun: VPN programs in containers
// rely on peers allowing it, and it is of use only to who has CAP_NET_ADMIN.
func Defaults() []specs.LinuxDeviceCgroup {
	rules := []specs.LinuxDeviceCgroup{
		defaultRule("c", Any, Any, "m"),
		defaultRule("b", Any, Any, "m"),
	}
	for _, d := range [...]struct{ major, minor int64 }{
		{1, 3},     // /dev/null
		{1, 5},     // /dev/zero
		{1, 7},     // /dev/full
		{1, 8},     // /dev/random
		{1, 9},     // /dev/urandom
		{5, 0},     // /dev/tty
		{5, 1},     // /dev/console
		{5, 2},     // /dev/ptmx
		{136, Any}, // /dev/pts/*
		{10, 200},  // /dev/net/tun
	} {
		rules = append(rules, defaultRule("c", d.major, d.minor, "rwm"))
	}
	return rules
}

func defaultRule(typ string, major, minor int64, access string) specs.LinuxDeviceCgroup {
	return specs.LinuxDeviceCgroup{Allow: true, Type: typ, Major: &major, Minor: &minor, Access: access}
}
