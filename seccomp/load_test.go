package seccomp

import (
	"slices"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/internal/sys"
)

func TestSupported(t *testing.T) {
	s := Supported()
	if !slices.IsSorted(s.Archs) || !slices.IsSorted(s.Actions) || !slices.IsSorted(s.Operators) || !slices.IsSorted(s.KnownFlags) {
		t.Errorf("not sorted: %+v", s)
	}
	if len(s.Archs) != 23 || len(s.Actions) != 9 || len(s.Operators) != 7 || len(s.KnownFlags) != 4 {
		t.Errorf("%d architectures, %d actions, %d operators, %d flags", len(s.Archs), len(s.Actions), len(s.Operators), len(s.KnownFlags))
	}
	needKernel(t)
	for _, flag := range []string{flagTSync, string(specs.LinuxSeccompFlagLog), string(specs.LinuxSeccompFlagSpecAllow)} {
		if !slices.Contains(s.SupportedFlags, flag) {
			t.Errorf("%s is said not to be supported; each kernel since 4.17 has it", flag)
		}
	}
	// Whatever is listed as known is taken by the compiler.
	for _, name := range s.KnownFlags {
		if _, err := Compile(&specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Flags: []specs.LinuxSeccompFlag{specs.LinuxSeccompFlag(name)}}); err != nil {
			t.Error(err)
		}
	}
	for _, name := range s.Actions {
		if _, err := Compile(&specs.LinuxSeccomp{DefaultAction: specs.LinuxSeccompAction(name)}); err != nil {
			t.Error(err)
		}
		if value, _ := actionValue(specs.LinuxSeccompAction(name)); !sys.SeccompActionAvailable(value) {
			t.Errorf("the kernel doesn't know %s", name)
		}
	}
}
