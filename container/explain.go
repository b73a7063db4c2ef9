package container

import (
	"fmt"
	"path"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/compile"
	"github.com/berth-runtime/berth/host"
	"github.com/berth-runtime/berth/internal/json"
	"github.com/berth-runtime/berth/plan"
	"github.com/berth-runtime/berth/program"
	"github.com/berth-runtime/berth/spec"
	"golang.org/x/sys/unix"
)

// ExplainOptions are what a container to be explained would be made with.
type ExplainOptions struct {
	ID      string
	Systemd bool
	// SystemdVersion is what to take systemd for; with 0 it is asked.
	SystemdVersion int
}

// Explain tells what making a container of a bundle would do: its Plan, and the
// Program that would run inside. It touches nothing and needs no rights: what
// only a real start can know is shown by example (numbers of descriptors).
func Explain(bundle string, o *ExplainOptions, asJSON bool) ([]byte, error) {
	s, warnings, err := spec.LoadChecked(bundle)
	if err != nil {
		return nil, err
	}
	h, err := host.Probe()
	if err != nil {
		return nil, err
	}
	if o.Systemd {
		assumeSystemd(h, o.SystemdVersion)
	}
	p, err := plan.New(s, h, plan.Options{ID: o.ID, Bundle: bundle, SystemdCgroup: o.Systemd})
	if err != nil {
		return nil, &spec.ConfigError{Err: err}
	}
	for _, w := range warnings {
		p.Warnings = append(p.Warnings, w.Error())
	}
	code, err := rehearse(p, h)
	if err != nil {
		return nil, err
	}
	if asJSON {
		w := json.NewWriter(nil, "  ")
		w.Object()
		w.Key("plan")
		p.JSON(w)
		w.Key("program")
		programJSON(code, w)
		w.End()
		return append(w.Bytes(), '\n'), nil
	}
	text := p.Text()
	text = append(text, "\nProgram (the calls of the container's first process, in order)\n"...)
	return append(text, code.String()...), nil
}

// latestSystemd is what explain takes systemd for where there is none to ask:
// one that has all the properties that we know of.
const latestSystemd = 257

// assumeSystemd asks systemd what it is, or takes it for what is said, and notes
// that it did.
func assumeSystemd(h *host.Host, version int) {
	user := host.UserSystemd()
	root := "/"
	if user {
		root = fmt.Sprintf("/user.slice/user-%d.slice/user@%d.service", h.UID, h.UID)
	}
	assumed := "its version as given"
	if version == 0 {
		b := dialSystemd()
		defer b.Close()
		if b.tell(h) == nil {
			return
		}
		version, assumed = latestSystemd, "assumed, as none answers here"
	}
	h.Systemd = h.SystemdOf(version, root, user)
	h.Systemd.Assumed = assumed
	if user && h.Systemd.Controllers == nil {
		h.Systemd.Controllers = []string{"cpu", "cpuset", "io", "memory", "pids"}
	}
}

// rehearse compiles the Program as create would, with descriptors that are not
// there.
func rehearse(p *plan.Plan, h *host.Host) (*program.Program, error) {
	m := &maker{Container: &Container{runtime: &Runtime{}}, o: &CreateOptions{}, plan: p, host: h}
	const firstFD = 100
	next := firstFD
	if err := m.namespaces(func(*plan.Namespace) (int, error) { next++; return next, nil }); err != nil {
		return nil, err
	}
	f := &m.spawn.Facts
	f.Joins = m.spawn.Joins
	f.Report, f.Gate, f.LastCap, f.OpenFiles = 3, 4, lastCap(), 1024*1024
	f.Sources = make([]compile.Source, len(p.Mounts))
	for i := range p.Mounts {
		var st unix.Stat_t
		f.Sources[i].Dir = unix.Stat(p.Mounts[i].Source, &st) != nil || st.Mode&unix.S_IFMT == unix.S_IFDIR
	}
	if p.Root.Discard {
		layers, err := layersOf(p)
		if err != nil {
			return nil, err
		}
		f.Layers = layers
	}
	if p.Cgroup.Unit != nil {
		awaitUnit(p, h, f)
		return compile.Container(p, f)
	}
	place := func(h *cgroup.Hierarchy) string { return path.Join(h.Mountpoint, p.Cgroup.Path) }
	f.CgroupDirs = cgroupDirs(h.Cgroups, place)
	for _, hierarchy := range h.Cgroups.Hierarchies() {
		if hierarchy.Version == 1 && !p.Cgroup.None {
			f.Tasks = append(f.Tasks, place(hierarchy)+"/tasks")
		}
	}
	return compile.Container(p, f)
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
