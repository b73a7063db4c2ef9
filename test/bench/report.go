package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Report is all that was measured, and on what.
type Report struct {
	Machine  Machine
	Versions map[string]string
	Rows     []*Row
}

// Machine is what it was measured on.
type Machine struct {
	Kernel, CPU, OS, Date string
	CPUs                  int
	MemoryMiB             int64
	Load                  string // of the last minute, at the beginning
	Busy                  int    `json:",omitempty"` // rounds that were begun while the CPUs were not idle
}

// Row is one thing that contenders did in turns.
type Row struct {
	Group, Name, Unit string
	// More is set where more is better.
	More bool `json:",omitempty"`
	// Axis and At say what there was, and how much, while a row of growth was measured.
	Axis string  `json:",omitempty"`
	At   float64 `json:",omitempty"`
	// Target has, by contender, what the ratio of the medians is to be: at most, or
	// at least where more is better.
	Target map[string]float64 `json:",omitempty"`
	Cells  []Cell
}

// Cell is one contender's part of a row.
type Cell struct {
	Contender        string
	Median, Min, Max float64 `json:",omitempty"`
	CPU              float64 `json:",omitempty"` // milliseconds
	Faults           float64 `json:",omitempty"` // pages
	Rounds           int     `json:",omitempty"`
	Failed           string  `json:",omitempty"`
}

// target sets what is to be reached against crun and runc; 0 stands for nothing.
func (r *Row) target(crun, runc float64) {
	r.Target = map[string]float64{}
	if crun > 0 {
		r.Target["crun"] = crun
	}
	if runc > 0 {
		r.Target["runc"] = runc
	}
}

// ratio compares our median with a peer's.
func (r *Row) ratio(peer *Cell) (float64, bool) {
	i := slices.IndexFunc(r.Cells, func(c Cell) bool { return strings.HasPrefix(c.Contender, ours) })
	if i < 0 || r.Cells[i].Failed != "" || peer.Failed != "" || peer.Median == 0 || &r.Cells[i] == peer {
		return 0, false
	}
	return r.Cells[i].Median / peer.Median, true
}

// reached tells whether a ratio is what it is to be.
func (r *Row) reached(peer string, ratio float64) (target float64, reached, wanted bool) {
	target, wanted = r.Target[peer]
	if r.More {
		return target, ratio >= target, wanted
	}
	return target, ratio <= target, wanted
}

func newReport(b *bench) *Report {
	r := &Report{Machine: machine(), Versions: map[string]string{}}
	for _, e := range b.engines {
		r.Versions[e.name] = version(e.words("--version"))
		if e.what != "" {
			r.Versions[e.name] += " (" + e.what + ")"
		}
	}
	for _, name := range []string{"containerd"} {
		if path, err := exec.LookPath(name); err == nil {
			r.Versions[name] = version([]string{path, "--version"}) + " (" + packaged() + ")"
		}
	}
	return r
}

func machine() Machine {
	m := Machine{CPUs: runtime.NumCPU(), Date: time.Now().UTC().Format("2006-01-02"), CPU: fieldOf("/proc/cpuinfo", "model name")}
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		m.Kernel = unix.ByteSliceToString(name.Release[:])
	}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		m.MemoryMiB = int64(info.Totalram) * int64(info.Unit) >> 20
	}
	m.OS = strings.Trim(fieldOf("/etc/os-release", "PRETTY_NAME"), `"`)
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load, _, _ = strings.Cut(string(load), " ")
	}
	return m
}

// fieldOf gives the value of the first line that begins with a name, behind the
// first : or =.
func fieldOf(file, name string) string {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, name) {
			if i := strings.IndexAny(line, ":="); i >= 0 {
				return strings.TrimSpace(line[i+1:])
			}
		}
	}
	return ""
}

// add takes a row that has been measured, and shows it.
func (r *Report) add(row *Row) {
	r.Rows = append(r.Rows, row)
	progress("  %s", row.line())
}

// keep takes over the rows of groups that were not measured this time.
func (r *Report) keep(old *Report) {
	var kept []*Row
	for _, g := range groups {
		measured := slices.ContainsFunc(r.Rows, func(row *Row) bool { return row.Group == g.name })
		from := old.Rows
		if measured {
			from = r.Rows
		}
		for _, row := range from {
			if row.Group == g.name {
				kept = append(kept, row)
			}
		}
	}
	r.Rows = kept
}

func readReport(dir string) (*Report, error) {
	data, err := os.ReadFile(filepath.Join(dir, "performance.json"))
	if err != nil {
		return nil, err
	}
	r := new(Report)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("performance.json: %w", err)
	}
	return r, nil
}

// writeDocs makes the files of the docs directory anew.
func (r *Report) writeDocs(dir string) error {
	data, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "performance.json"), append(data, '\n'), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "performance.svg"), []byte(r.plot()), 0o644); err != nil {
		return err
	}
	if growth := r.growthPlot(); growth != "" {
		if err := os.WriteFile(filepath.Join(dir, growthFile), []byte(growth), 0o644); err != nil {
			return err
		}
	}
	page := filepath.Join(dir, "performance.md")
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	const from, to = "<!-- measured -->\n", "<!-- end -->\n"
	before, rest, ok := strings.Cut(string(text), from)
	_, after, ok2 := strings.Cut(rest, to)
	if !ok || !ok2 {
		return fmt.Errorf("%s has no place between %q and %q for the tables", page, from, to)
	}
	return os.WriteFile(page, []byte(before+from+r.markdown()+to+after), 0o644)
}
