package cgrouptool

import (
	"strconv"

	"github.com/berth-runtime/berth/internal/json"
)

// JSON writes the tree; what is not known is left out.
func (n *Node) JSON(w *json.Writer) {
	w.Object()
	w.Key("path").String(n.Path)
	w.Key("hierarchies").Array()
	for _, h := range n.Hierarchies {
		w.String(h.String())
	}
	w.End()
	n.Usage.JSON(w)
	if n.Processes != nil {
		w.Key("processes").Array()
		for _, p := range n.Processes {
			w.Object()
			w.Key("pid").Int(int64(p.PID))
			w.Key("command").String(p.Command)
			w.End()
		}
		w.End()
	}
	if n.Children != nil {
		w.Key("children").Array()
		for _, child := range n.Children {
			child.JSON(w)
		}
		w.End()
	}
	w.End()
}

// JSON writes the members of an open object.
func (u *Usage) JSON(w *json.Writer) {
	for _, c := range []struct {
		key   string
		value *uint64
	}{
		{"cpuNanoseconds", u.CPU}, {"memoryBytes", u.Memory}, {"memoryLimit", u.MemoryLimit}, {"tasks", u.Tasks},
		{"tasksLimit", u.TasksLimit}, {"readBytes", u.ReadBytes}, {"writtenBytes", u.WrittenBytes},
	} {
		if c.value != nil {
			w.Key(c.key).Uint(*c.value)
		}
	}
	decimals(w, "cpuPressure", u.CPUPressure)
	decimals(w, "memoryPressure", u.MemoryPressure)
	decimals(w, "ioPressure", u.IOPressure)
}

// JSON writes a row of a ranking.
func (r *Row) JSON(w *json.Writer) {
	w.Object()
	w.Key("path").String(r.Path)
	r.Usage.JSON(w)
	decimals(w, "cpuProcessors", r.CPU)
	decimals(w, "readBytesPerSecond", r.Read)
	decimals(w, "writtenBytesPerSecond", r.Write)
	w.End()
}

func decimals(w *json.Writer, key string, value *float64) {
	if value != nil {
		w.Key(key).Raw(strconv.FormatFloat(*value, 'f', -1, 64))
	}
}

// JSON writes where a controller is.
func (c *Controller) JSON(w *json.Writer) {
	w.Object()
	w.Key("name").String(c.Name)
	w.Key("enabled").Bool(c.Enabled)
	if c.Home != nil {
		w.Key("version").Int(int64(c.Home.Version))
		w.Key("hierarchy").String(c.Home.String())
		w.Key("hierarchyID").Int(int64(c.ID))
		w.Key("mountpoint").String(c.Home.Mountpoint)
		w.Key("cgroups").Int(int64(c.Groups))
		if c.Home.Version == 2 {
			w.Key("enabledIn").Strings(c.Enablers)
		}
	}
	w.End()
}

// JSON writes one cgroup of a list.
func (f *Found) JSON(w *json.Writer) {
	w.Object()
	w.Key("path").String(f.Path)
	w.Key("version").Int(int64(f.Hierarchy.Version))
	w.Key("hierarchy").String(f.Hierarchy.String())
	w.Key("mountpoint").String(f.Hierarchy.Mountpoint)
	w.Key("controllers").Strings(f.Controllers)
	w.End()
}
