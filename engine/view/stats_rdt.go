package view

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/internal/json"
)

// RdtStats is what the resctrl file system says of a container's group.
type RdtStats struct {
	// Info are the limits of the hardware, by resource ("L3", "MB") and file.
	Info map[string]map[string]string
	// Root and Group are the lines of the schemata files, by resource.
	Root, Group map[string]string
	Domains     []RdtDomain
}

// RdtDomain is what one L3 cache has counted; nil where it does not count that.
type RdtDomain struct {
	MBMTotal, MBMLocal, LLCOccupancy *uint64
}

// readRdt reads the files of a resctrl group. What the hardware has not is left
// out.
func readRdt(dir string) *RdtStats {
	root := dir
	if _, err := os.Stat(filepath.Join(root, "info")); err != nil {
		root = filepath.Dir(dir)
	}
	s := &RdtStats{Info: map[string]map[string]string{}, Root: readSchemata(root), Group: readSchemata(dir)}
	for _, resource := range [...]string{"L3", "MB"} {
		files, err := os.ReadDir(filepath.Join(root, "info", resource))
		if err != nil {
			continue
		}
		s.Info[resource] = map[string]string{}
		for _, f := range files {
			if text, err := os.ReadFile(filepath.Join(root, "info", resource, f.Name())); err == nil {
				s.Info[resource][f.Name()] = strings.TrimSpace(string(text))
			}
		}
	}
	domains, err := os.ReadDir(filepath.Join(dir, "mon_data"))
	if err != nil {
		return s
	}
	for _, d := range domains {
		if !strings.HasPrefix(d.Name(), "mon_L3_") {
			continue
		}
		count := func(file string) *uint64 {
			text, err := os.ReadFile(filepath.Join(dir, "mon_data", d.Name(), file))
			if err != nil {
				return nil
			}
			// "Unavailable" and "Error" are answers too.
			n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
			if err != nil {
				return nil
			}
			return &n
		}
		s.Domains = append(s.Domains, RdtDomain{count("mbm_total_bytes"), count("mbm_local_bytes"), count("llc_occupancy")})
	}
	return s
}

func readSchemata(dir string) map[string]string {
	lines := map[string]string{}
	text, err := os.ReadFile(filepath.Join(dir, "schemata"))
	if err != nil {
		return lines
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if resource, _, found := strings.Cut(line, ":"); found {
			lines[resource] = line
		}
	}
	return lines
}

func (s *RdtStats) write(w *json.Writer) {
	for _, r := range [...]struct{ key, resource string }{{"l3_cache", "L3"}, {"mem_bw", "MB"}} {
		if info := s.Info[r.resource]; len(info) > 0 {
			w.Key(r.key + "_info").Object()
			for _, file := range slices.Sorted(maps.Keys(info)) {
				rdtInfo(w, file, info[file])
			}
			w.End()
		}
		if line := s.Root[r.resource]; line != "" {
			w.Key(r.key + "_schema_root").String(line)
		}
		if line := s.Group[r.resource]; line != "" {
			w.Key(r.key + "_schema").String(line)
		}
	}
	if slices.ContainsFunc(s.Domains, func(d RdtDomain) bool { return d.MBMTotal != nil || d.MBMLocal != nil }) {
		w.Key("mbm_stats").Array()
		for _, d := range s.Domains {
			w.Object()
			known(w, "mbm_total_bytes", d.MBMTotal)
			known(w, "mbm_local_bytes", d.MBMLocal)
			w.End()
		}
		w.End()
	}
	if slices.ContainsFunc(s.Domains, func(d RdtDomain) bool { return d.LLCOccupancy != nil }) {
		w.Key("cmt_stats").Array()
		for _, d := range s.Domains {
			w.Object()
			known(w, "llc_occupancy", d.LLCOccupancy)
			w.End()
		}
		w.End()
	}
}

// rdtInfo writes those of the info files that clients know.
func rdtInfo(w *json.Writer, file, value string) {
	switch file {
	case "cbm_mask":
		w.Key(file).String(value) // hexadecimal
	case "min_cbm_bits", "num_closids", "bandwidth_gran", "delay_linear", "min_bandwidth":
		if n, err := strconv.ParseUint(value, 10, 64); err == nil {
			w.Key(file).Uint(n)
		}
	}
}
