package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// line is a row for the terminal.
func (r *Row) line() string {
	parts := make([]string, len(r.Cells))
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Failed != "" {
			parts[i] = c.Contender + " fails"
			continue
		}
		parts[i] = c.Contender + " " + number(c.Median)
		if ratio, ok := r.ratio(c); ok {
			parts[i] += fmt.Sprintf(" (%.3f)", ratio)
		}
	}
	return r.Name + " [" + r.Unit + "]: " + strings.Join(parts, ", ")
}

// text is the table for the terminal.
func (r *Report) text() string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "row\tunit\tcontender\tmedian\tmin\tCPU ms\tfaults\tratio\ttarget\t")
	for _, row := range r.Rows {
		name, unit := row.Name, row.Unit
		for i := range row.Cells {
			c := &row.Cells[i]
			if c.Failed != "" {
				fmt.Fprintf(w, "%s\t%s\t%s\tfails\t\t\t\t\t\t\n", name, unit, c.Contender)
			} else {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", name, unit, c.Contender, number(c.Median), number(c.Min), cpu(c), faults(c), row.ratioText(c), row.targetText(c))
			}
			name, unit = "", ""
		}
	}
	w.Flush()
	return out.String()
}

// markdown is what goes into docs/performance.md.
func (r *Report) markdown() string {
	var out strings.Builder
	m := r.Machine
	fmt.Fprintf(&out, "\nMeasured on %s: Linux %s, %s, %d CPUs, %d MiB, %s; load before it began %s.\n", m.Date, m.Kernel, m.CPU, m.CPUs, m.MemoryMiB, m.OS, m.Load)
	fmt.Fprintf(&out, "berth %s, crun %s, runc %s, containerd %s. Medians [minima]; ratio: our median by theirs.\n", r.Versions[ours], r.Versions["crun"], r.Versions["runc"], r.Versions["containerd"])
	if m.Busy > 0 {
		fmt.Fprintf(&out, "Rounds that were begun while the CPUs were not idle: %d.\n", m.Busy)
	}
	if slices.ContainsFunc(r.Rows, func(row *Row) bool { return row.Axis != "" }) {
		fmt.Fprintf(&out, "\n![cost against what else there is on the host](%s)\n", growthFile)
	}
	missed := 0
	for _, g := range groups {
		if !slices.ContainsFunc(r.Rows, func(row *Row) bool { return row.Group == g.name }) {
			continue
		}
		fmt.Fprintf(&out, "\n### %s\n\n| | contender | median [min] | CPU ms | page faults | ratio | aim | |\n| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |\n", g.summary)
		for _, row := range r.Rows {
			if row.Group != g.name {
				continue
			}
			name := row.Name + ", " + row.Unit
			for i := range row.Cells {
				c := &row.Cells[i]
				if c.Failed != "" {
					fmt.Fprintf(&out, "| %s | %s | fails | | | | | |\n", name, c.Contender)
					name = ""
					continue
				}
				verdict := row.verdict(c)
				if strings.HasPrefix(verdict, "missed") {
					missed++
				}
				fmt.Fprintf(&out, "| %s | %s | %s [%s] | %s | %s | %s | %s | %s |\n", name, c.Contender, number(c.Median), number(c.Min), cpu(c), faults(c), row.ratioText(c), row.targetText(c), verdict)
				name = ""
			}
		}
	}
	fmt.Fprintf(&out, "\nAims missed: %d.\n\n", missed)
	return out.String()
}

// verdict says in words what the ratio is.
func (r *Row) verdict(c *Cell) string {
	ratio, ok := r.ratio(c)
	if !ok {
		return ""
	}
	lost := ratio > 1
	if r.More {
		lost = ratio < 1
	}
	_, reached, wanted := r.reached(c.Contender, ratio)
	lost = lost && c.Contender != floorName // no runtime does less
	switch {
	case wanted && reached:
		return "reached"
	case wanted && lost:
		return "missed, **they win**"
	case wanted:
		return "missed"
	case lost:
		return "**they win**"
	}
	return ""
}

func (r *Row) ratioText(c *Cell) string {
	if ratio, ok := r.ratio(c); ok {
		return fmt.Sprintf("%.3f", ratio)
	}
	return ""
}

func (r *Row) targetText(c *Cell) string {
	target, _, wanted := r.reached(c.Contender, 0)
	if !wanted {
		return ""
	}
	sign := "≤ "
	if r.More {
		sign = "≥ "
	}
	return sign + fmt.Sprint(target)
}

func cpu(c *Cell) string {
	if c.CPU == 0 {
		return ""
	}
	return number(c.CPU)
}

func faults(c *Cell) string {
	if c.Faults == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f", c.Faults)
}

func number(v float64) string {
	switch {
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	case v >= 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
