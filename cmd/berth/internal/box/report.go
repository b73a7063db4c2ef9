package box

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/cmd/berth/internal/cgrouptool"
	"github.com/berth-runtime/berth/engine/supervisor"
	"github.com/berth-runtime/berth/internal/escape"
	"github.com/berth-runtime/berth/internal/json"
	"golang.org/x/sys/unix"
)

// A Report is what a box was and used. What is not known is nil.
type Report struct {
	ID     string
	Status int    // the exit status of the command, 128+N for signal N
	Signal string // that ended it, ""
	// TimedOut is set where --timeout ended it.
	TimedOut bool
	Wall     time.Duration
	// Of all processes where the box had a cgroup (Whole), else of the command and
	// the children that it waited for.
	Whole        bool
	User, System time.Duration
	PeakMemory   *uint64
	MemoryLimit  *uint64
	Throttled    *time.Duration
	// Of the block devices: what stays in the page cache is not counted.
	Read, Written *uint64
	PeakPids      *uint64
	PidsLimit     *uint64
	// PidsRefused is how often a process could not be made for the limit.
	PidsRefused *uint64
	OOM         *OOM
	Hidden      []string // the caller's and the machine's secrets that were not in the box
	// Denied is what the seccomp profile refused.
	Denied []*supervisor.Denial
}

// OOM says what was OOM-killed, and by which limit.
type OOM struct {
	Kills uint64
	// By names the limit: "--memory", "a cgroup above", or "the machine".
	By string
}

// Fill takes over what was counted of the box's cgroup, and of its command.
func (r *Report) Fill(o *Options, s *cgroup.Stats, usage *unix.Rusage) {
	r.User, r.System = time.Duration(usage.Utime.Nano()), time.Duration(usage.Stime.Nano())
	if s == nil {
		peak := uint64(usage.Maxrss) * 1024 // of the largest one (getrusage(2))
		r.PeakMemory = &peak
		read, written := uint64(usage.Inblock)*512, uint64(usage.Oublock)*512
		r.Read, r.Written = &read, &written
		return
	}
	if c := s.CPU; c != nil && c.User != nil && c.System != nil {
		r.Whole = true
		r.User, r.System = time.Duration(*c.User), time.Duration(*c.System)
		if c.Throttled != nil && o.CPUs != 0 {
			throttled := time.Duration(*c.Throttled)
			r.Throttled = &throttled
		}
	}
	if m := s.Memory; m != nil {
		r.PeakMemory = m.Peak
		if o.Memory != 0 {
			limit := uint64(o.Memory)
			r.MemoryLimit = &limit
		}
		r.OOM = OOMOf(o, m)
	}
	if r.PeakMemory == nil {
		peak := uint64(usage.Maxrss) * 1024
		r.PeakMemory = &peak
	}
	if s.IO != nil {
		r.Read, r.Written = new(uint64), new(uint64)
		for _, d := range s.IO.Devices {
			*r.Read += value(d.ReadBytes)
			*r.Written += value(d.WriteBytes)
		}
	}
	if p := s.Pids; p != nil {
		r.PeakPids = p.Peak
		if o.Pids != 0 {
			limit := uint64(o.Pids)
			r.PidsLimit = &limit
			r.PidsRefused = p.Failures
		}
	}
}

// OOMOf finds out whose limit it was; nil if nothing was killed. A kill is counted in the cgroup of
// the killed, the limit that was hit where it was set.
func OOMOf(o *Options, m *cgroup.MemoryStats) *OOM {
	if m.Events == nil || value(m.Events.OOMKill) == 0 {
		return nil
	}
	by := "a limit above it or the machine's memory"
	if o.Memory != 0 && m.LimitHit() {
		by = "--memory " + cgrouptool.Size(uint64(o.Memory))
	}
	return &OOM{Kills: *m.Events.OOMKill, By: by}
}

// Killed says how many processes, and by what.
func (o *OOM) Killed() string {
	text := "1 process"
	if o.Kills != 1 {
		text = strconv.FormatUint(o.Kills, 10) + " processes"
	}
	return text + " OOM-killed, by " + o.By
}

func value(n *uint64) uint64 {
	if n == nil {
		return 0
	}
	return *n
}

// Text is the report for people, a few lines.
func (r *Report) Text() string {
	var b strings.Builder
	b.WriteString("berth box: " + r.end() + " after " + span(r.Wall) + "\n")
	row := func(name, text string) { b.WriteString("  " + (name + "          ")[:9] + text + "\n") }
	cpu := span(r.User+r.System) + " (" + span(r.User) + " user, " + span(r.System) + " system)"
	if !r.Whole {
		cpu += ", of the command alone: the box had no cgroup"
	}
	if r.Throttled != nil {
		cpu += ", throttled for " + span(*r.Throttled)
	}
	row("cpu", cpu)
	if r.PeakMemory != nil {
		memory := "peak " + cgrouptool.Size(*r.PeakMemory)
		if r.MemoryLimit != nil {
			memory += " of " + cgrouptool.Size(*r.MemoryLimit)
		}
		if r.OOM != nil {
			memory += "; " + r.OOM.Killed()
		}
		row("memory", memory)
	}
	if r.Read != nil {
		row("disk", cgrouptool.Size(*r.Read)+" read, "+cgrouptool.Size(*r.Written)+" written")
	}
	if r.PeakPids != nil {
		pids := "peak " + strconv.FormatUint(*r.PeakPids, 10)
		if r.PidsLimit != nil {
			pids += " of " + strconv.FormatUint(*r.PidsLimit, 10)
		}
		if value(r.PidsRefused) > 0 {
			pids += "; refused " + strconv.FormatUint(*r.PidsRefused, 10) + " times"
		}
		row("tasks", pids)
	}
	for _, d := range r.Denied {
		row("denied", escape.Message(d.String()))
	}
	if len(r.Hidden) > 0 {
		row("hidden", r.hidden(func(string) bool { return true }))
	}
	return b.String()
}

// hidden lists secrets.
func (r *Report) hidden(which func(name string) bool) string {
	list := inHome(slices.DeleteFunc(slices.Clone(r.Hidden), func(name string) bool { return !which(name) }))
	if len(list) == 0 {
		return ""
	}
	return strings.Join(list, " ") + " (--show PATH)"
}

// inHome has paths as people read them, those in a home as a shell writes them.
func inHome(names []string) (list []string) {
	home := realPath(os.Getenv("HOME"))
	for _, name := range names {
		if home != "" && home != "/" && within(name, home) {
			name = "~" + strings.TrimPrefix(name, home)
		}
		list = append(list, escape.Message(name))
	}
	return list
}

// few is how many refused calls are told to who has not asked for a report.
const few = 5

// Stopped is a line on what a limit did to the command or its children, and a few on what the
// seccomp profile refused, "" where neither can be why it failed: for who has not asked for a
// report, and sees a status only.
func (r *Report) Stopped() string {
	text := r.limited()
	if r.Status == 0 {
		return text
	}
	// What a limit has ended was not missing anything.
	if list := r.hidden(func(name string) bool { return !within(name, "/etc") }); list != "" && text == "" {
		text += "berth box: hidden: " + list + "\n"
	}
	for i, d := range r.Denied {
		if i == few {
			text += "berth box: and " + strconv.Itoa(len(r.Denied)-few) + " more (--report text)\n"
			break
		}
		text += "berth box: denied: " + escape.Message(d.String()) + "\n"
	}
	return text
}

func (r *Report) limited() string {
	what := ""
	switch {
	case r.TimedOut:
		what = r.end() + " after " + span(r.Wall)
	case r.OOM != nil && r.Signal == "SIGKILL":
		what = r.end() + ", by " + r.OOM.By
	case r.OOM != nil:
		what = r.OOM.Killed()
	case value(r.PidsRefused) > 0:
		what = "refused to create a process " + strconv.FormatUint(*r.PidsRefused, 10) + " times, by --pids " + strconv.FormatUint(*r.PidsLimit, 10)
	default:
		return ""
	}
	return "berth box: " + what + "\n"
}

func (r *Report) end() string {
	switch {
	case r.TimedOut:
		return "killed by --timeout"
	case r.OOM != nil && r.Signal == "SIGKILL":
		return "OOM-killed"
	case r.Signal != "":
		return "killed by " + r.Signal
	}
	return "exit status " + strconv.Itoa(r.Status)
}

// span writes a length of time as people read it.
func span(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return strconv.FormatInt(d.Microseconds(), 10) + "µs"
	case d < time.Second:
		return strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', 1, 64) + "ms"
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 2, 64) + "s"
	}
	return d.Round(time.Second).String()
}

// JSON writes the report as one line. Times are in nanoseconds, sizes in bytes.
func (r *Report) JSON() []byte {
	w := json.NewWriter(nil, "")
	w.Object()
	w.Key("id").String(r.ID)
	w.Key("status").Int(int64(r.Status))
	if r.Signal != "" {
		w.Key("signal").String(r.Signal)
	}
	w.Key("timedOut").Bool(r.TimedOut)
	w.Key("wall").Int(int64(r.Wall))
	w.Key("cpu").Object()
	w.Key("user").Int(int64(r.User))
	w.Key("system").Int(int64(r.System))
	w.Key("whole").Bool(r.Whole)
	if r.Throttled != nil {
		w.Key("throttled").Int(int64(*r.Throttled))
	}
	w.End()
	w.Key("memory").Object()
	number(w, "peak", r.PeakMemory)
	number(w, "limit", r.MemoryLimit)
	if r.OOM != nil {
		w.Key("oomKills").Uint(r.OOM.Kills)
		w.Key("oomBy").String(r.OOM.By)
	}
	w.End()
	w.Key("io").Object()
	number(w, "read", r.Read)
	number(w, "written", r.Written)
	w.End()
	w.Key("pids").Object()
	number(w, "peak", r.PeakPids)
	number(w, "limit", r.PidsLimit)
	number(w, "refused", r.PidsRefused)
	w.End()
	w.Key("hidden").Array()
	for _, name := range r.Hidden {
		w.String(name)
	}
	w.End()
	w.Key("denied").Array()
	for _, d := range r.Denied {
		w.Object()
		w.Key("call").String(d.Call)
		w.Key("errno").String(d.Errno)
		w.Key("rule").String(d.Rule)
		if d.Program != "" {
			w.Key("program").String(d.Program)
			w.Key("pid").Int(int64(d.Pid))
		}
		if d.With != "" {
			w.Key("allowedWith").String(d.With)
		}
		w.Key("count").Int(int64(d.Count))
		w.End()
	}
	w.End()
	w.End()
	return append(w.Bytes(), '\n')
}

func number(w *json.Writer, key string, n *uint64) {
	if n != nil {
		w.Key(key).Uint(*n)
	}
}
