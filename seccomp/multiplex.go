package seccomp

import "slices"

// On x86, MIPS o32, PowerPC, s390, m68k and SH a program can reach the socket calls and those of
// System V IPC in two ways: directly (on x86 and s390 since Linux 4.3 and 5.1), and through
// socketcall(2) and ipc(2), whose first argument is the number of the call meant. A rule for such a
// call is to hold on both ways, or it would be no rule.
//
// The second way has a catch: the arguments of the call meant are in memory, behind a pointer,
// where no filter can see them. A rule with conditions on them can't be followed. What the
// multiplexer then gives is the strictest of all that the profile could have meant: the default
// action and the actions of the rules for that call. So nothing is let through that the direct way
// would refuse; a profile that wants it otherwise names socketcall or ipc itself.

// A subCall is a call behind a multiplexer: its number there, SYS_* of <linux/net.h> or a name of
// <linux/ipc.h>.
type subCall struct {
	viaIPC bool
	number uint8
}

// ipcMask leaves of ipc's first argument what tells the call; the upper half is the version of its
// interface.
const ipcMask = 0xffff

func subCallOf(name string) (subCall, bool) {
	switch name {
	case "socket":
		return subCall{false, 1}, true
	case "bind":
		return subCall{false, 2}, true
	case "connect":
		return subCall{false, 3}, true
	case "listen":
		return subCall{false, 4}, true
	case "accept":
		return subCall{false, 5}, true
	case "getsockname":
		return subCall{false, 6}, true
	case "getpeername":
		return subCall{false, 7}, true
	case "socketpair":
		return subCall{false, 8}, true
	case "send":
		return subCall{false, 9}, true
	case "recv":
		return subCall{false, 10}, true
	case "sendto":
		return subCall{false, 11}, true
	case "recvfrom":
		return subCall{false, 12}, true
	case "shutdown":
		return subCall{false, 13}, true
	case "setsockopt":
		return subCall{false, 14}, true
	case "getsockopt":
		return subCall{false, 15}, true
	case "sendmsg":
		return subCall{false, 16}, true
	case "recvmsg":
		return subCall{false, 17}, true
	case "accept4":
		return subCall{false, 18}, true
	case "recvmmsg":
		return subCall{false, 19}, true
	case "sendmmsg":
		return subCall{false, 20}, true
	case "semop":
		return subCall{true, 1}, true
	case "semget":
		return subCall{true, 2}, true
	case "semctl":
		return subCall{true, 3}, true
	case "semtimedop":
		return subCall{true, 4}, true
	case "msgsnd":
		return subCall{true, 11}, true
	case "msgrcv":
		return subCall{true, 12}, true
	case "msgget":
		return subCall{true, 13}, true
	case "msgctl":
		return subCall{true, 14}, true
	case "shmat":
		return subCall{true, 21}, true
	case "shmdt":
		return subCall{true, 22}, true
	case "shmget":
		return subCall{true, 23}, true
	case "shmctl":
		return subCall{true, 24}, true
	}
	return subCall{}, false
}

// A multiplexer collects, for one architecture, the rules for calls that socketcall and ipc reach
// too.
type multiplexer struct {
	arch            *arch
	socketcall, ipc uint32 // their numbers
	noted           []noted
}

// noted is what the profile says about one call behind a multiplexer.
type noted struct {
	sub         subCall
	multiplexer uint32 // number of it
	rule        int    // index of the rule that is kept for it, where the profile first names the call
	entry       int    // that the action is of
	action      uint32
	always      bool // the action is that of a rule without conditions
}

// multiplexerOf is nil for an architecture that has no socketcall. Those that have it have ipc as
// well.
func multiplexerOf(a *arch) *multiplexer {
	socketcall, ok := a.table.NumberOf("socketcall")
	if !ok {
		return nil
	}
	ipc, _ := a.table.NumberOf("ipc")
	return &multiplexer{arch: a, socketcall: socketcall, ipc: ipc}
}

// note takes a rule for a name in, if that is a call behind a multiplexer. When it meets the call
// for the first time, it returns what it noted, so that the caller can keep a place in the order of
// rules for it.
func (m *multiplexer) note(name string, e *entry, index, place int, fallback uint32) *noted {
	sub, ok := subCallOf(name)
	if !ok {
		return nil
	}
	k := slices.IndexFunc(m.noted, func(n noted) bool { return n.sub == sub })
	fresh := k < 0
	if fresh {
		k = len(m.noted)
		m.noted = append(m.noted, noted{sub: sub, multiplexer: m.socketcall, rule: place, entry: index, action: fallback})
		if sub.viaIPC {
			m.noted[k].multiplexer = m.ipc
		}
	}
	n := &m.noted[k]
	switch {
	case n.always:
	case len(e.rulesFor(m.arch)[0]) == 0:
		n.always, n.action, n.entry = true, e.action, index
	default:
		n.action = stricter(n.action, e.action)
	}
	if fresh {
		return n
	}
	return nil
}

// conditions tell the call from the multiplexer's others.
func (n *noted) conditions() []condition {
	if n.sub.viaIPC {
		return []condition{{op: maskedEqual, mask: ipcMask, value: uint64(n.sub.number)}}
	}
	return []condition{{op: equal, value: uint64(n.sub.number)}}
}
