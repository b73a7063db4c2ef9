package plan

import (
	"fmt"
	"math"

	"github.com/berth-runtime/berth/cgroup/ledger"
)

// Kind is what a step does.
type Kind string

// The kinds of steps.
const (
	StartSlice   Kind = "slice"     // systemd starts a slice
	MakeGroup    Kind = "cgroup"    // a cgroup is made
	SetProperty  Kind = "property"  // of a unit
	SetFile      Kind = "file"      // of a cgroup
	Move         Kind = "move"      // processes go into a cgroup
	SetParameter Kind = "parameter" // of the kernel
	SetScore     Kind = "oom-score" // of a process
	SetParent    Kind = "parent"    // of containers that name no place of their own, for berth
)

// Step is one change to the machine.
type Step struct {
	Kind Kind
	// Target is the unit, the cgroup, the kernel parameter or the process.
	Target string
	// Name is the property or the file.
	Name string
	// Value is what it is to be, Now what it is; "" for what is not there.
	Value, Now string
	// Cause is the entry of the configuration that asks for it.
	Cause string
	// CheckOnly steps are looked at, and never done.
	CheckOnly bool

	// Group is the path of the cgroup that a property or file belongs to.
	Group string
	// Property is the typed value of a SetProperty.
	Property *ledger.Property
	// Write is the file in which the value of a SetProperty or SetFile shows.
	Write *ledger.Write
	// FileNow is what that file has now.
	FileNow string
	// Memory is set for the limit of memory, which is not lowered blindly.
	Memory bool
	// Process is who a SetScore, or the Move of one process, is about.
	Process *Daemon
}

// ID names what the step changes.
func (s *Step) ID() string {
	if s.Name == "" {
		return string(s.Kind) + " " + s.Target
	}
	return string(s.Kind) + " " + s.Target + " " + s.Name
}

// Done reports whether what the step wants is so already: for a property, both
// in systemd's mind and in the kernel's file.
func (s *Step) Done() bool {
	switch s.Kind {
	case SetProperty:
		return s.Now == s.Value && s.fileHolds()
	case SetFile:
		return s.fileHolds()
	}
	return s.Now == s.Value
}

func (s *Step) fileHolds() bool {
	if s.Write == nil {
		return true
	}
	same, _ := s.Write.Took(s.FileNow)
	return same && s.FileNow != ""
}

// String says the step in a line.
func (s *Step) String() string {
	switch s.Kind {
	case StartSlice:
		return "start " + s.Target
	case MakeGroup:
		return "make cgroup " + s.Target
	case SetProperty, SetFile:
		return fmt.Sprintf("set %s of %s to %s", s.Name, s.Target, s.Value)
	case Move:
		return fmt.Sprintf("move %s into %s", s.Name, s.Target)
	case SetParent:
		return fmt.Sprintf("set %s in %s to %s", s.Name, s.Target, s.Value)
	case SetParameter:
		return fmt.Sprintf("set kernel parameter %s to %s", s.Target, s.Value)
	}
	return fmt.Sprintf("set the OOM score of %s to %s", s.Target, s.Value)
}

// PropertyValue prints the value of a property as systemd's tools do.
func PropertyValue(v any) string {
	if n, ok := v.(uint64); ok && n == math.MaxUint64 {
		return "infinity"
	}
	if v == nil {
		return ""
	}
	return ledger.FormatValue(v)
}
