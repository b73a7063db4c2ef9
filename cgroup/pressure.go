package cgroup

import (
	"bytes"
	"strconv"
)

// Pressure is how long work was stalled waiting for a resource (PSI).
type Pressure struct {
	Some *PressureLine `json:"some,omitempty"` // at least one task waited
	Full *PressureLine `json:"full,omitempty"` // all of them waited
}

// PressureLine is shares of the time in percent, and the time itself.
type PressureLine struct {
	Avg10  float64 `json:"avg10"`
	Avg60  float64 `json:"avg60"`
	Avg300 float64 `json:"avg300"`
	Total  uint64  `json:"total"` // microseconds
}

// parsePressure reads "some avg10=0.00 avg60=0.00 avg300=0.00 total=0" lines;
// nil if none is whole.
func parsePressure(text []byte) *Pressure {
	var p Pressure
	for line := range bytes.Lines(text) {
		kind, rest, _ := bytes.Cut(bytes.TrimSpace(line), []byte{' '})
		var l PressureLine
		seen := 0
		for field := range bytes.FieldsSeq(rest) {
			key, value, _ := bytes.Cut(field, []byte{'='})
			var err error
			switch string(key) {
			case "avg10":
				l.Avg10, err = strconv.ParseFloat(string(value), 64)
			case "avg60":
				l.Avg60, err = strconv.ParseFloat(string(value), 64)
			case "avg300":
				l.Avg300, err = strconv.ParseFloat(string(value), 64)
			case "total":
				l.Total, err = strconv.ParseUint(string(value), 10, 64)
			default:
				continue
			}
			if err == nil {
				seen++
			}
		}
		switch {
		case seen != 4:
		case string(kind) == "some":
			p.Some = &l
		case string(kind) == "full":
			p.Full = &l
		}
	}
	if p == (Pressure{}) {
		return nil
	}
	return &p
}

// pressure reads a PSI file; nil where the kernel has it not, or off (psi=0,
// cgroup.pressure).
func (r *statsReader) pressure(n *node, file string) *Pressure {
	if !r.pressures {
		return nil
	}
	text, ok := r.text(n, file)
	if !ok {
		return nil
	}
	return parsePressure(text)
}
