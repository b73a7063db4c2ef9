package plan

import (
	"strconv"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// CloneFlag returns the CLONE_NEW… flag of a namespace type, 0 for an unknown one.
func CloneFlag(t specs.LinuxNamespaceType) uintptr {
	switch t {
	case specs.PIDNamespace:
		return unix.CLONE_NEWPID
	case specs.NetworkNamespace:
		return unix.CLONE_NEWNET
	case specs.MountNamespace:
		return unix.CLONE_NEWNS
	case specs.IPCNamespace:
		return unix.CLONE_NEWIPC
	case specs.UTSNamespace:
		return unix.CLONE_NEWUTS
	case specs.UserNamespace:
		return unix.CLONE_NEWUSER
	case specs.CgroupNamespace:
		return unix.CLONE_NEWCGROUP
	case specs.TimeNamespace:
		return unix.CLONE_NEWTIME
	}
	return 0
}

func namespacesOf(list []specs.LinuxNamespace) []Namespace {
	namespaces := make([]Namespace, len(list))
	for i, n := range list {
		namespaces[i] = Namespace{Type: n.Type, Flag: CloneFlag(n.Type), Path: n.Path,
			At: "/linux/namespaces/" + strconv.Itoa(i)}
	}
	return namespaces
}

// timeOffsets renders the offsets as /proc/PID/timens_offsets takes them
// (time_namespaces(7)), in a fixed order.
func timeOffsets(offsets map[string]specs.LinuxTimeOffset) string {
	var text []byte
	for _, clock := range [...]string{"monotonic", "boottime"} {
		if o, ok := offsets[clock]; ok {
			text = append(text, clock...)
			text = append(text, ' ')
			text = strconv.AppendInt(text, o.Secs, 10)
			text = append(text, ' ')
			text = strconv.AppendUint(text, uint64(o.Nanosecs), 10)
			text = append(text, '\n')
		}
	}
	return string(text)
}
