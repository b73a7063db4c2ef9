package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

const growthFile = "performance-growth.svg"

// growthPlot draws, for each thing that was made to be more and more, what run and exec cost beside
// it: both axes are logarithmic, so that a straight line that rises is growth by a power. It is ""
// where nothing of that was measured.
func (r *Report) growthPlot() string {
	const panel, height, left, top, gap = 250, 190, 60, 50, 70
	colours := map[string]string{ours: "#1b6ca8", "crun": "#c97b2a", "runc": "#8a8a8a"}
	var axes []string
	least, most := math.Inf(1), 0.0
	for _, row := range r.Rows {
		if row.Axis == "" {
			continue
		}
		if !slices.Contains(axes, row.Axis) {
			axes = append(axes, row.Axis)
		}
		for _, c := range row.Cells {
			if c.Median > 0 {
				least, most = min(least, c.Median), max(most, c.Median)
			}
		}
	}
	if len(axes) == 0 || most == 0 {
		return ""
	}
	low, high := math.Floor(math.Log10(least)), math.Ceil(math.Log10(most))
	var out strings.Builder
	width := left + len(axes)*(panel+gap)
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">`+"\n", width, top+height+50)
	fmt.Fprintf(&out, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, top+height+50)
	fmt.Fprintf(&out, `<text x="12" y="18" font-size="13">Milliseconds of run (lines) and exec (dashes) beside more and more of what is not theirs</text>`+"\n")
	for i, name := range []string{ours, "crun", "runc"} {
		fmt.Fprintf(&out, `<text x="%d" y="36" fill="%s">%s</text>`+"\n", 12+60*i, colours[name], name)
	}
	for i, axis := range axes {
		x0 := float64(left + i*(panel+gap))
		widest := 1.0
		for _, row := range r.Rows {
			if row.Axis == axis {
				widest = max(widest, row.At)
			}
		}
		right := max(1, math.Log10(widest))
		at := func(count, ms float64) (x, y float64) {
			return x0 + math.Log10(max(count, 1))/right*panel, top + (high-math.Log10(ms))/(high-low)*height
		}
		fmt.Fprintf(&out, `<rect x="%.0f" y="%d" width="%d" height="%d" fill="none" stroke="#ccc"/>`+"\n", x0, top, panel, height)
		for power := low; power <= high; power++ {
			_, y := at(1, math.Pow(10, power))
			fmt.Fprintf(&out, `<text x="%.0f" y="%.1f" text-anchor="end">%g</text>`+"\n", x0-4, y+4, math.Pow(10, power))
		}
		for power := 0.0; power <= right; power++ {
			x, _ := at(math.Pow(10, power), math.Pow(10, low))
			fmt.Fprintf(&out, `<text x="%.1f" y="%d" text-anchor="middle">%g</text>`+"\n", x, top+height+16, math.Pow(10, power))
		}
		fmt.Fprintf(&out, `<text x="%.0f" y="%d" text-anchor="middle" font-weight="bold">%s</text>`+"\n", x0+panel/2, top+height+34, escape(axis))
		for _, kind := range []string{"run,", "exec,"} {
			for _, name := range []string{ours, "crun", "runc"} {
				var points []string
				for _, row := range r.Rows {
					c := slices.IndexFunc(row.Cells, func(c Cell) bool { return c.Contender == name && c.Median > 0 })
					if row.Axis != axis || !strings.HasPrefix(row.Name, kind) || c < 0 {
						continue
					}
					x, y := at(row.At, row.Cells[c].Median)
					points = append(points, fmt.Sprintf("%.1f,%.1f", x, y))
				}
				dashes := ""
				if kind == "exec," {
					dashes = ` stroke-dasharray="5 3"`
				}
				fmt.Fprintf(&out, `<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"%s/>`+"\n", strings.Join(points, " "), colours[name], dashes)
			}
		}
	}
	return out.String() + "</svg>\n"
}
