package launch

import (
	"github.com/berth-runtime/berth/engine/program"
	"github.com/berth-runtime/berth/internal/trace"
)

// stamps is who hears when a Program made its calls.
type stamps struct {
	trace   *trace.Trace
	program *program.Program
}

// newStamps is nil for a Program that tells nothing.
func newStamps(t *trace.Trace, p *program.Program) *stamps {
	if p.StampsLen() == 0 {
		return nil
	}
	return &stamps{t, p}
}

// room is how long a message of the child can be.
func (s *stamps) room() int {
	const others = program.ReasonsLen // the longest; others are failures and Asks
	if s == nil {
		return others
	}
	return max(others, s.program.StampsLen())
}

// take reports whether a message was the stamps. Each call has taken until the next
// one; the last stamped op is the one that sends the stamps, and has no end.
func (s *stamps) take(message []byte) bool {
	if s == nil {
		return false
	}
	list, ok := s.program.ParseStamps(message)
	if !ok {
		return false
	}
	calls := make([]trace.Call, 0, len(list))
	for i := range max(len(list)-1, 0) {
		op := list[i].Op
		calls = append(calls, trace.Call{
			Name: op.Name(), Text: op.Note.Text, Pointer: op.Note.Pointer,
			Start: list[i].When, Took: list[i+1].When.Sub(list[i].When), Tolerated: list[i].Tolerated,
		})
	}
	s.trace.Calls(calls)
	return true
}
