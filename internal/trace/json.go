package trace

import (
	"strconv"
	"time"

	"github.com/berth-runtime/berth/internal/json"
)

// The two rows of the timeline: threads of one process, in the words of the format.
const (
	phasesRow = 1
	callsRow  = 2
)

// JSON is the Trace in the Trace Event Format, which Perfetto (ui.perfetto.dev) and
// Chrome's about:tracing show as a timeline. Times are microseconds since the begin.
func (t *Trace) JSON() []byte {
	t.end()
	var w json.Writer
	w.Indent = " "
	w.Object()
	w.Key("displayTimeUnit").String("ns")
	w.Key("otherData").Object()
	w.Key("command").String(t.title)
	w.Key("began").Time(t.began)
	w.End()
	w.Key("traceEvents").Array()
	nameRow(&w, phasesRow, "berth")
	nameRow(&w, callsRow, "the container's init")
	event(&w, phasesRow, t.title, 0, t.took)
	w.End()
	for i := range t.phases {
		p := &t.phases[i]
		event(&w, phasesRow, p.name, p.start, p.took)
		w.End()
	}
	for i := range t.calls {
		c := &t.calls[i]
		event(&w, callsRow, c.Name, t.since(c), c.Took)
		w.Key("args").Object()
		w.Key("for").String(c.Text)
		if c.Pointer != "" {
			w.Key("config").String(c.Pointer)
		}
		if c.Tolerated != 0 {
			w.Key("tolerated").String(c.Tolerated.Error())
		}
		w.End()
		w.End()
	}
	w.End()
	w.End()
	return append(w.Bytes(), '\n')
}

// nameRow is what tells the name of a row.
func nameRow(w *json.Writer, row int64, name string) {
	w.Object()
	w.Key("ph").String("M")
	w.Key("name").String("thread_name")
	w.Key("pid").Int(1)
	w.Key("tid").Int(row)
	w.Key("args").Object()
	w.Key("name").String(name)
	w.End()
	w.End()
}

// event begins a complete event, which the caller ends.
func event(w *json.Writer, row int64, name string, start, took time.Duration) {
	w.Object()
	w.Key("ph").String("X")
	w.Key("name").String(name)
	w.Key("pid").Int(1)
	w.Key("tid").Int(row)
	w.Key("ts").Raw(microseconds(start))
	w.Key("dur").Raw(microseconds(took))
}

func microseconds(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Microsecond), 'f', 3, 64)
}
