package view

import "github.com/berth-runtime/berth/internal/json"

// JSON writes the inspection.
func (i *Inspection) JSON(w *json.Writer) {
	w.Object()
	w.Key("state")
	i.State.JSON(w)
	if end := i.End(); end != "" {
		w.Key("end").String(end)
	}
	w.Key("oomKills").Uint(i.OOMKills)
	w.Key("denied").Array()
	for n := range i.Denied {
		i.Denied[n].JSON(w)
	}
	w.End()
	w.Key("plan")
	PlanJSON(i.Plan, i.Plan.Warnings, w)
	w.Key("limits").Array()
	for _, l := range i.Limits {
		w.Object()
		w.Key("file").String(l.File)
		w.Key("now").String(l.Now)
		if l.Pointer != "" {
			w.Key("set").String(l.Set)
			w.Key("pointer").String(l.Pointer)
		}
		w.End()
	}
	w.End()
	w.Key("namespaces").Array()
	for _, n := range i.Namespaces {
		w.Object()
		w.Key("type").String(n.Type)
		w.Key("id").String(n.ID)
		w.Key("shared").Bool(n.Shared)
		w.End()
	}
	w.End()
	w.Key("mounts").Array()
	for _, m := range i.Mounts {
		w.Object()
		w.Key("path").String(m.Point)
		w.Key("type").String(m.Type)
		w.Key("root").String(m.Root)
		w.Key("options").String(m.Options)
		w.End()
	}
	w.End()
	w.End()
}
