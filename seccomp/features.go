package seccomp

import "github.com/opencontainers/runtime-spec/specs-go"

// The names of the spec that this package knows, sorted as the features document wants them.
var (
	actionNames = [...]string{
		string(specs.ActAllow), string(specs.ActErrno), string(specs.ActKill), string(specs.ActKillProcess),
		string(specs.ActKillThread), string(specs.ActLog), string(specs.ActNotify), string(specs.ActTrace), string(specs.ActTrap),
	}
	operatorNames = [...]string{
		string(specs.OpEqualTo), string(specs.OpGreaterEqual), string(specs.OpGreaterThan), string(specs.OpLessEqual),
		string(specs.OpLessThan), string(specs.OpMaskedEqual), string(specs.OpNotEqual),
	}
	flagNames = [...]string{
		string(specs.LinuxSeccompFlagLog), string(specs.LinuxSeccompFlagSpecAllow), flagTSync, string(specs.LinuxSeccompFlagWaitKillableRecv),
	}
)
