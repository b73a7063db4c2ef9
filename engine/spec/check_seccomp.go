package spec

import (
	"slices"
	"strconv"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// seccomp checks a profile's words and numbers. Names of system calls are not
// checked: a profile lists calls of every architecture and of newer kernels.
func (c *checker) seccomp(p place, profile *specs.LinuxSeccomp) {
	c.action(p.at("defaultAction"), profile.DefaultAction)
	c.errno(p.at("defaultErrnoRet"), profile.DefaultErrnoRet, profile.DefaultAction)
	if profile.DefaultAction == specs.ActNotify {
		c.bad(p.at("defaultAction"), "SCMP_ACT_NOTIFY can't be the default: the call that hands over the listener would wait for it")
	}
	archs := p.at("architectures")
	for i, arch := range profile.Architectures {
		if !knownArch(arch) {
			c.bad(archs.nth(i), "unknown architecture "+quote(string(arch))+", expected a name like SCMP_ARCH_X86_64")
		}
	}
	notifies := c.syscalls(p.at("syscalls"), profile.Syscalls)
	flags := p.at("flags")
	for i, flag := range profile.Flags {
		switch flag {
		case "SECCOMP_FILTER_FLAG_TSYNC", specs.LinuxSeccompFlagLog, specs.LinuxSeccompFlagSpecAllow:
		case specs.LinuxSeccompFlagWaitKillableRecv:
			if !notifies { // seccomp(2) answers EINVAL
				c.bad(flags.nth(i), string(flag)+" is for profiles that use SCMP_ACT_NOTIFY")
			}
		default:
			c.bad(flags.nth(i), "unknown flag "+quote(string(flag))+", "+
				oneOf("SECCOMP_FILTER_FLAG_TSYNC", "SECCOMP_FILTER_FLAG_LOG", "SECCOMP_FILTER_FLAG_SPEC_ALLOW",
					"SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV"))
		}
	}
	switch {
	case profile.ListenerPath != "":
		c.text(p.at("listenerPath"), profile.ListenerPath)
	case notifies:
		c.hint(p.at("listenerPath"), "is required with SCMP_ACT_NOTIFY", "name the UNIX socket of the agent that decides")
	}
	if profile.ListenerMetadata != "" && profile.ListenerPath == "" {
		c.bad(p.at("listenerMetadata"), "must not be set without listenerPath")
	}
}

// syscalls checks the rules, and tells whether one of them notifies.
func (c *checker) syscalls(list place, rules []specs.LinuxSyscall) (notifies bool) {
	for i := range rules {
		p, rule := list.nth(i), &rules[i]
		names := p.at("names")
		if len(rule.Names) == 0 {
			c.bad(names, "must have at least one entry")
		}
		for j, name := range rule.Names {
			if name == "" {
				c.bad(names.nth(j), "is empty, expected a system call's name")
			}
		}
		c.action(p.at("action"), rule.Action)
		c.errno(p.at("errnoRet"), rule.ErrnoRet, rule.Action)
		if rule.Action == specs.ActNotify {
			notifies = true
			if j := slices.Index(rule.Names, "write"); j >= 0 {
				c.bad(names.nth(j), "SCMP_ACT_NOTIFY can't be used on write: the container's start needs it before the listener is handed over")
			}
		}
		args := p.at("args")
		for j := range rule.Args {
			c.condition(args.nth(j), &rule.Args[j])
		}
	}
	return notifies
}

func (c *checker) condition(p place, arg *specs.LinuxSeccompArg) {
	if arg.Index > 5 {
		c.bad(p.at("index"), "expected 0 to 5, found "+strconv.FormatUint(uint64(arg.Index), 10))
	}
	switch arg.Op {
	case specs.OpNotEqual, specs.OpLessThan, specs.OpLessEqual, specs.OpEqualTo, specs.OpGreaterEqual,
		specs.OpGreaterThan, specs.OpMaskedEqual:
	default:
		c.bad(p.at("op"), "unknown operator "+quote(string(arg.Op))+", "+
			oneOf("SCMP_CMP_NE", "SCMP_CMP_LT", "SCMP_CMP_LE", "SCMP_CMP_EQ", "SCMP_CMP_GE", "SCMP_CMP_GT", "SCMP_CMP_MASKED_EQ"))
	}
}

func (c *checker) action(p place, action specs.LinuxSeccompAction) {
	switch action {
	case specs.ActKill, specs.ActKillProcess, specs.ActKillThread, specs.ActTrap, specs.ActErrno, specs.ActTrace,
		specs.ActAllow, specs.ActLog, specs.ActNotify:
	default:
		c.bad(p, "unknown action "+quote(string(action))+", "+
			oneOf("SCMP_ACT_KILL", "SCMP_ACT_KILL_PROCESS", "SCMP_ACT_KILL_THREAD", "SCMP_ACT_TRAP", "SCMP_ACT_ERRNO",
				"SCMP_ACT_TRACE", "SCMP_ACT_ALLOW", "SCMP_ACT_LOG", "SCMP_ACT_NOTIFY"))
	}
}

// errno checks the number that goes with an action: an errno for ERRNO, up to
// the kernel's MAX_ERRNO, and 16 bits for the tracer with TRACE.
func (c *checker) errno(p place, value *uint, action specs.LinuxSeccompAction) {
	if value == nil {
		return
	}
	most := uint(0)
	switch action {
	case specs.ActErrno:
		most = 4095
	case specs.ActTrace:
		most = 65535
	case "":
		return // the complaint is about the missing action
	default:
		c.bad(p, "is for SCMP_ACT_ERRNO and SCMP_ACT_TRACE only, the action is "+quote(string(action)))
		return
	}
	if *value > most {
		c.bad(p, "expected 0 to "+strconv.FormatUint(uint64(most), 10)+", found "+strconv.FormatUint(uint64(*value), 10))
	}
}

func knownArch(arch specs.Arch) bool {
	switch arch {
	case specs.ArchX86, specs.ArchX86_64, specs.ArchX32, specs.ArchARM, specs.ArchAARCH64,
		specs.ArchMIPS, specs.ArchMIPS64, specs.ArchMIPS64N32, specs.ArchMIPSEL, specs.ArchMIPSEL64, specs.ArchMIPSEL64N32,
		specs.ArchPPC, specs.ArchPPC64, specs.ArchPPC64LE, specs.ArchS390, specs.ArchS390X,
		specs.ArchPARISC, specs.ArchPARISC64, specs.ArchRISCV64, specs.ArchLOONGARCH64,
		specs.ArchM68K, specs.ArchSH, specs.ArchSHEB:
		return true
	}
	return false
}
