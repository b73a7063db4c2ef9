package main

import (
	"fmt"
	"slices"
	"strings"
)

// plotted are the rows that the plot shows, by how their names begin.
var plotted = []string{
	"run, isolated, full, cgroup v1", "run, isolated, seccomp, cgroup v2", "create,", "exec,", "delete,",
	"create to delete", "first process of a created container", "smallest memory limit that runs /bin/true, full",
}

// plot draws, for a few rows, each contender as a part of the slowest one's median.
func (r *Report) plot() string {
	const left, width, bar, gap = 330, 420, 14, 16
	colours := []string{"#1b6ca8", "#c97b2a", "#8a8a8a", "#5a8f3c"}
	var body strings.Builder
	y := 34
	for _, begin := range plotted {
		i := slices.IndexFunc(r.Rows, func(row *Row) bool { return strings.HasPrefix(row.Name, begin) })
		if i < 0 {
			continue
		}
		row := r.Rows[i]
		most := 0.0
		for _, c := range row.Cells {
			most = max(most, c.Median)
		}
		if most == 0 {
			continue
		}
		fmt.Fprintf(&body, `<text x="%d" y="%d" text-anchor="end" font-weight="bold">%s</text>`+"\n", left-90, y+bar-3, escape(row.Name))
		for n, c := range row.Cells {
			if c.Failed != "" {
				continue
			}
			fmt.Fprintf(&body, `<text x="%d" y="%d" text-anchor="end">%s</text>`, left-6, y+bar-3, escape(c.Contender))
			fmt.Fprintf(&body, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`, left, y, c.Median/most*width, bar-2, colours[n%len(colours)])
			fmt.Fprintf(&body, `<text x="%.1f" y="%d">%s %s</text>`+"\n", left+c.Median/most*width+5, y+bar-3, number(c.Median), row.Unit)
			y += bar
		}
		y += gap
	}
	head := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="-160 0 1000 %d" font-family="sans-serif" font-size="11">`+"\n", y)
	head += fmt.Sprintf(`<rect x="-160" width="1000" height="%d" fill="white"/><text x="-150" y="18" font-size="13">Medians, Linux %s, %d CPUs, %s: shorter is better</text>`+"\n", y, escape(r.Machine.Kernel), r.Machine.CPUs, r.Machine.Date)
	return head + body.String() + "</svg>\n"
}

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}
