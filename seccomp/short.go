package seccomp

import "github.com/opencontainers/runtime-spec/specs-go"

// AllowAllBut is a profile that refuses some calls by EPERM, and allows the rest: good against
// accidents, and no sandbox, since a new kernel's calls are allowed too. It has rules for all
// architectures that machines of this one can run, or a refused call could be made by another
// number. A name that no architecture knows refuses nothing: [Filter.Unknown] lists those.
func AllowAllBut(names ...string) *specs.LinuxSeccomp {
	return short(specs.ActAllow, specs.ActErrno, names)
}

// AllowOnly is a profile that allows some calls, and refuses the rest: by EPERM, or, if they are
// newer than all of the names, by ENOSYS, so that C libraries do without (see [Compile]).
func AllowOnly(names ...string) *specs.LinuxSeccomp {
	return short(specs.ActErrno, specs.ActAllow, names)
}

func short(others, these specs.LinuxSeccompAction, names []string) *specs.LinuxSeccomp {
	p := &specs.LinuxSeccomp{DefaultAction: others, Architectures: kin(NativeArch())}
	if len(names) > 0 {
		p.Syscalls = []specs.LinuxSyscall{{Names: append([]string(nil), names...), Action: these}}
	}
	return p
}
