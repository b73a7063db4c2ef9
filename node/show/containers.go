package show

import (
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/berth-runtime/berth/internal/escape"
	"github.com/berth-runtime/berth/node/inventory"
	"github.com/berth-runtime/berth/node/plan"
)

// listed is how many containers a table has room for: of more, it has those outside of the
// workloads only.
const listed = 60

// containerRow is a container as the tables have it.
type containerRow struct {
	inventory.Container
	Unit    string `json:"unit,omitempty"`
	Counted string `json:"countedAs,omitempty"`
	Outside bool   `json:"outside"`
	Change  string `json:"change,omitempty"` // what to change so that it is not outside
}

func containers(p *plan.Plan) []containerRow {
	outside := p.Outside()
	list := []containerRow{}
	for _, c := range p.Facts.Containers {
		row := containerRow{Container: c, Unit: c.Unit(), Counted: string(p.Part(c.Cgroup)), Outside: slices.Contains(outside, c)}
		if row.Outside {
			row.Change = p.Move(&c)
		}
		list = append(list, row)
	}
	return list
}

// shorter gives the rows that are shown, and what is said of the others.
func shorter(all []containerRow) (rows []containerRow, rest string) {
	if len(all) <= listed {
		return all, ""
	}
	rows = slices.DeleteFunc(slices.Clone(all), func(r containerRow) bool { return !r.Outside })
	inside := len(all) - len(rows)
	if len(rows) > listed {
		return rows[:listed], fmt.Sprintf("%d containers in the workloads and %d more outside; --json has all", inside, len(rows)-listed)
	}
	return rows, fmt.Sprintf("%d containers in the workloads; --json has all", inside)
}

// byMaker counts containers by what made them.
func byMaker(p *plan.Plan) string {
	counts := map[inventory.Maker]int{}
	for _, c := range p.Facts.Containers {
		counts[c.Maker]++
	}
	var parts []string
	for maker, n := range counts {
		parts = append(parts, fmt.Sprintf("%s %d", maker, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// containers lists all that run, whatever made them, with the part that they count to.
func (s Style) containers(p *plan.Plan) string {
	if len(p.Facts.Containers) == 0 {
		return ""
	}
	shown, rest := shorter(containers(p))
	rows := [][]string{{"CONTAINER", "CGROUP", "COUNTED AS", "RUNTIME"}}
	for _, r := range shown {
		counted := r.Counted
		if counted == "" {
			counted = "-"
		}
		if r.Outside {
			counted += " (outside)"
		}
		rows = append(rows, []string{escape.Message(r.Name()), escape.Message(r.Cgroup), counted, r.Runtime})
	}
	text := fmt.Sprintf("\nContainers of this node: %s; %d outside of the workloads\n", byMaker(p), len(p.Outside()))
	if len(rows) > 1 {
		text += s.table(rows, func(int) bool { return false }, s.heading)
	}
	if rest != "" {
		text += rest + "\n"
	}
	return text
}

func containersHTML(b *strings.Builder, p *plan.Plan) {
	if len(p.Facts.Containers) == 0 {
		return
	}
	shown, rest := shorter(containers(p))
	fmt.Fprintf(b, "<h3>Containers <small>%s; %d outside of the workloads</small></h3>", byMaker(p), len(p.Outside()))
	b.WriteString("<table><tr><th>container<th>cgroup<th>counted as<th>runtime</tr>\n")
	for _, r := range shown {
		class, counted := "done", r.Counted
		if counted == "" {
			counted = "–"
		}
		if r.Outside {
			class = "open"
		}
		fmt.Fprintf(b, "<tr class=%s><td>%s<td class=value>%s<td>%s<td>%s</tr>\n", class,
			html.EscapeString(escape.Message(r.Name())), html.EscapeString(escape.Message(r.Cgroup)), counted, html.EscapeString(r.Runtime))
	}
	b.WriteString("</table>\n")
	if rest != "" {
		fmt.Fprintf(b, "<p class=note>%s</p>\n", rest)
	}
}
