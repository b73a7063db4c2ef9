package view

import (
	"github.com/berth-runtime/berth/engine/container"
	"github.com/berth-runtime/berth/engine/program"
	"github.com/berth-runtime/berth/internal/json"
)

// Explain tells all that making a container would do: its Plan, and the Program that would run
// inside.
func Explain(f *container.Foreseen, asJSON bool) []byte {
	if asJSON {
		w := json.NewWriter(nil, "  ")
		w.Object()
		w.Key("plan")
		PlanJSON(f.Plan, f.Warnings, w)
		w.Key("program")
		programJSON(f.Program, w)
		w.End()
		return append(w.Bytes(), '\n')
	}
	text := PlanText(f.Plan, f.Warnings)
	text = append(text, "\nProgram (the calls of the container's first process, in order)\n"...)
	return append(text, f.Program.String()...)
}

func programJSON(p *program.Program, w *json.Writer) {
	w.Array()
	for _, l := range p.Lines() {
		w.Object()
		w.Key("index").Int(int64(l.Index))
		w.Key("call").String(l.Call)
		w.Key("args").Strings(l.Args)
		if l.Result != "" {
			w.Key("result").String(l.Result)
		}
		if l.Target >= 0 {
			w.Key("expected").Strings(l.Expected)
			w.Key("target").Int(int64(l.Target))
		}
		if l.Note.Text != "" {
			w.Key("for").String(l.Note.Text)
		}
		if l.Note.Pointer != "" {
			w.Key("pointer").String(l.Note.Pointer)
		}
		w.End()
	}
	w.End()
}
