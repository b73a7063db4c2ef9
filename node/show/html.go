package show

import (
	"fmt"
	"html"
	"strings"
	"time"

	"github.com/berth-runtime/berth/node/config/allocatable"
	"github.com/berth-runtime/berth/node/config/resource"
	"github.com/berth-runtime/berth/node/plan"
)

// HTML draws a node as a page for browsers. It is self-contained: no script, no
// font and no picture comes from elsewhere, and it can be mailed or archived.
func HTML(n *Node, at time.Time) []byte {
	var b strings.Builder
	b.WriteString(pageHead)
	init := "no systemd"
	if v := n.Plan.Facts.SystemdVersion; v > 0 {
		init = fmt.Sprintf("systemd %d", v)
	}
	fmt.Fprintf(&b, "<header><h1>Node partition</h1><p>%s · cgroups %s · driver %s · %s</p></header>\n<main>\n",
		init, html.EscapeString(n.Plan.Facts.Mode), html.EscapeString(string(n.Plan.Driver)), at.UTC().Format("2006-01-02 15:04:05 UTC"))
	tiles(&b, n)
	remarks(&b, n.Plan)
	b.WriteString("<section><h2>How each resource is shared out</h2>\n<p class=legend>" +
		"<i class=system></i>system <i class=kube></i>kube <i class=workloads></i>workloads <i class=eviction></i>kept free by eviction <i class=huge></i>huge pages</p>\n")
	shares := n.Shares()
	for _, r := range n.Plan.Resources {
		resourceBars(&b, r, shares)
	}
	b.WriteString("</section>\n<section><h2>Hierarchy</h2>\n")
	tree(&b, n)
	b.WriteString("</section>\n<section><h2>Workloads and daemons</h2>\n")
	workloads(&b, n)
	b.WriteString("</section>\n<section><h2>Settings</h2>\n")
	settings(&b, n.Plan)
	b.WriteString("</section>\n</main>\n<footer>made by berth-node status --html</footer>\n</html>\n")
	return []byte(b.String())
}

// tiles are what matters most, in large figures.
func tiles(b *strings.Builder, n *Node) {
	tile := func(class, figure, what string) {
		fmt.Fprintf(b, "<div class=\"tile %s\"><b>%s</b><span>%s</span></div>\n", class, html.EscapeString(figure), html.EscapeString(what))
	}
	b.WriteString("<div class=tiles>\n")
	for _, name := range []resource.Name{resource.CPU, resource.Memory} {
		if r, ok := n.Plan.Resources.Of(name); ok {
			tile("workloads", name.Human(r.Allocatable), fmt.Sprintf("%s allocatable, of %s", name, name.Human(r.Capacity)))
		}
	}
	all := n.Now.Workloads()
	tile("workloads", fmt.Sprint(all.Containers), counted(all.Containers, "container runs", "containers run"))
	class, open := "well", len(n.Plan.Changes())
	if open > 0 {
		class = "open"
	}
	tile(class, fmt.Sprint(open), fmt.Sprintf("%s to be applied, %d in effect", counted(open, "setting", "settings"), n.Applied))
	class, odd := "well", len(n.Plan.Warnings)+len(n.Plan.Problems)
	if odd > 0 {
		class = "open"
	}
	tile(class, fmt.Sprint(odd), counted(odd, "thing to look at", "things to look at"))
	b.WriteString("</div>\n")
}

func counted(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// resourceBars draws how a resource is shared out, and to the same scale below it
// what each part uses of it.
func resourceBars(b *strings.Builder, r allocatable.Row, shares []Share) {
	f, name := r.Name.Human, html.EscapeString(string(r.Name))
	var sum int64
	var used strings.Builder
	known := false
	for _, s := range shares {
		amount, ok := s.Used[r.Name]
		known = known || ok
		sum += amount
		if amount > 0 && r.Capacity > 0 {
			fmt.Fprintf(&used, "<div class=\"part %s\" style=\"width:%.3f%%\" title=\"%s uses %s\"></div>",
				html.EscapeString(s.Name), min(percent(amount, r.Capacity), 100), html.EscapeString(s.Name), f(amount))
		}
	}
	fmt.Fprintf(b, "<div class=resource id=\"resource-%s\"><h3>%s <small>%s</small>", name, name, f(r.Capacity))
	if known && r.Capacity > 0 {
		fmt.Fprintf(b, "<small class=right>%s used, %.0f %%</small>", f(sum), percent(sum, r.Capacity))
	}
	b.WriteString("</h3><div class=bar>")
	for _, p := range []struct {
		class  string
		amount int64
	}{{"system", r.System}, {"kube", r.Kube}, {"workloads", r.Allocatable}, {"eviction", r.Eviction}, {"huge", r.HugePages}} {
		if p.amount > 0 && r.Capacity > 0 {
			fmt.Fprintf(b, "<div class=\"part %s\" style=\"flex-grow:%.4f\" title=\"%s %s of %s\"><span>%s</span></div>",
				p.class, 10*percent(p.amount, r.Capacity), p.class, f(p.amount), f(r.Capacity), f(p.amount))
		}
	}
	b.WriteString("</div>")
	if known {
		fmt.Fprintf(b, "<div class=used>%s</div>", used.String())
	}
	b.WriteString("</div>\n")
}

func percent(part, whole int64) float64 { return 100 * float64(part) / float64(whole) }

// tree draws the cgroups as boxes in boxes.
func tree(b *strings.Builder, n *Node) {
	b.WriteString("<div class=\"box root\"><b>/</b><div class=boxes>\n")
	for _, s := range n.Shares() {
		at, _ := n.Plan.Place(plan.Role(s.Name))
		name := at.Slice
		if name == "" {
			name = at.Path
		}
		enforced := map[string]string{"true": "enforced", "cpu": "cpu enforced", "false": "not enforced"}[s.Enforce]
		fmt.Fprintf(b, "<div class=\"box %s\" id=\"place-%s\"><b>%s</b><em>%s<i class=\"badge %s\">%s</i></em>",
			html.EscapeString(s.Name), html.EscapeString(s.Name), html.EscapeString(name), html.EscapeString(s.Name), html.EscapeString(s.Enforce), enforced)
		for _, r := range n.Plan.Resources {
			used, known := s.Used[r.Name]
			meter(b, r.Name, used, known, s.Reserved[r.Name])
		}
		if s.Name == string(plan.Workloads) && len(n.Now.Levels) > 1 {
			b.WriteString("<div class=levels>")
			for _, l := range n.Now.Levels {
				fmt.Fprintf(b, "<div class=box><b>%s</b><em>%d %s, %d %s</em></div>", html.EscapeString(l.Name),
					l.Pods, counted(l.Pods, "pod", "pods"), l.Containers, counted(l.Containers, "container", "containers"))
			}
			b.WriteString("</div>")
		}
		b.WriteString("</div>\n")
	}
	if n.Now.User != nil {
		b.WriteString("<div class=box><b>user.slice</b><em>sessions of users; counted as system-reserved</em>")
		meter(b, resource.Memory, n.Now.User.Memory, true, 0)
		b.WriteString("</div>\n")
	}
	b.WriteString("</div></div>\n")
}

// meter draws what is used of an amount; nothing where there is neither.
func meter(b *strings.Builder, name resource.Name, used int64, known bool, of int64) {
	if used == 0 && of == 0 {
		return
	}
	text := name.Human(of)
	switch {
	case known && of > 0:
		text = name.Human(used) + " of " + text
	case known:
		text = name.Human(used)
	}
	fmt.Fprintf(b, "<p class=meter><span>%s</span><span>%s</span></p>", html.EscapeString(string(name)), text)
	if known && of > 0 {
		class := ""
		if used > of {
			class = " class=over"
		}
		fmt.Fprintf(b, "<div class=fill><i%s style=\"width:%.2f%%\"></i></div>", class, min(percent(used, of), 100))
	}
}

// workloads are the containers by QoS level, and the daemons that run them.
func workloads(b *strings.Builder, n *Node) {
	b.WriteString("<table><tr><th>QoS level<th class=number>pods<th class=number>containers<th class=number>memory<th class=number>pids</tr>\n")
	for _, l := range n.Now.Levels {
		pods := "–"
		if n.Plan.Config.CgroupsPerQoS {
			pods = fmt.Sprint(l.Pods)
		}
		fmt.Fprintf(b, "<tr><td>%s<td class=number>%s<td class=number>%d<td class=number>%s<td class=number>%d</tr>\n",
			html.EscapeString(l.Name), pods, l.Containers, resource.Memory.Human(l.Use.Memory), l.Use.PIDs)
	}
	b.WriteString("</table>\n")
	containersHTML(b, n.Plan)
	if len(n.Plan.Facts.Daemons) > 0 {
		b.WriteString("<h3>Daemons</h3><table><tr><th>daemon<th>cgroup<th>counted as<th class=number>pid<th class=number>OOM score<th class=number>wanted</tr>\n")
		for _, d := range n.Plan.Facts.Daemons {
			part := string(n.Plan.Part(d.Cgroup))
			if part == "" {
				part = "–"
			}
			fmt.Fprintf(b, "<tr><td>%s<td><code>%s</code><td>%s<td class=number>%d<td class=number>%d<td class=number>%d</tr>\n",
				html.EscapeString(d.Name), html.EscapeString(d.Cgroup), part, d.PID, d.Score, n.Plan.Config.Scores[d.Key].Value)
		}
		b.WriteString("</table>\n")
	}
	if n.Now.Kubelet != "" {
		fmt.Fprintf(b, "<p class=note>The kubelet is in <code>%s</code>.</p>\n", html.EscapeString(n.Now.Kubelet))
	}
}

func settings(b *strings.Builder, p *plan.Plan) {
	b.WriteString("<table><tr><th><th>what<th>wanted<th>now<th>because of</tr>\n")
	for _, s := range p.Steps {
		class, mark := "done", "✓"
		if !s.Done() {
			class, mark = "open", "●"
		}
		now := s.Now
		if s.Kind == plan.SetProperty && s.Now == s.Value && !s.Done() {
			now = s.FileNow
		}
		if now == "" {
			now = "–"
		}
		fmt.Fprintf(b, "<tr class=%s><td class=mark>%s<td>%s <span>%s</span><td class=value>%s<td class=value>%s<td class=cause>%s</tr>\n", class, mark,
			html.EscapeString(s.Target), html.EscapeString(s.Name), html.EscapeString(s.Value), html.EscapeString(now), html.EscapeString(s.Cause))
	}
	b.WriteString("</table>\n")
}

func remarks(b *strings.Builder, p *plan.Plan) {
	if len(p.Warnings)+len(p.Problems) == 0 {
		return
	}
	b.WriteString("<section class=remarks><h2>To look at</h2><ul>\n")
	for _, err := range p.Problems {
		fmt.Fprintf(b, "<li class=problem>%s</li>\n", html.EscapeString(err.Error()))
	}
	for _, w := range p.Warnings {
		fmt.Fprintf(b, "<li>%s</li>\n", html.EscapeString(w))
	}
	b.WriteString("</ul></section>\n")
}

const pageHead = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Node partition</title>
<style>
:root { --back: #f3f5f8; --paper: #fff; --ink: #1b1f24; --soft: #5d6673; --line: #e1e5eb; --track: #e8ebf0; --system: #2f6fb5; --kube: #c2791b; --workloads: #2e8b57; --eviction: #8b949e; --huge: #7d5ba6; --odd: #c2791b; --oddback: #fff8ec; --bad: #c8372d; color-scheme: light dark }
@media (prefers-color-scheme: dark) { :root { --back: #0f1216; --paper: #181c21; --ink: #e8eaed; --soft: #9aa3ad; --line: #2b3138; --track: #2b3138; --system: #4f8fd6; --kube: #d0923c; --workloads: #45a472; --eviction: #6b747e; --huge: #9a7cc4; --odd: #e0a04a; --oddback: #2a2317; --bad: #f0685e } }
* { box-sizing: border-box }
body { margin: 0; background: var(--back); color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; font-variant-numeric: tabular-nums }
header, main, footer { max-width: 72rem; margin: 0 auto; padding: 0 1.5rem } header { padding-top: 2rem } footer { padding-bottom: 2rem; color: var(--soft); font-size: .8rem }
h1 { margin: 0; font-size: 1.75rem; letter-spacing: -.02em } h2 { margin: 0 0 .8rem; font-size: 1.05rem } h3 { display: flex; align-items: baseline; gap: .5rem; margin: 1.1rem 0 .35rem; font-size: .95rem }
small { color: var(--soft); font-weight: normal; font-size: .85rem } .right { margin-left: auto }
header p, .note, em { color: var(--soft); margin: .2rem 0; font-style: normal; font-size: .9rem } .note { margin-top: .8rem }
section { background: var(--paper); border: 1px solid var(--line); border-radius: 12px; padding: 1.2rem 1.4rem; margin: 1rem 0; box-shadow: 0 1px 2px rgb(0 0 0 / 4%) }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(10.5rem, 1fr)); gap: 1rem; margin: 1.2rem 0 1rem }
.tile { background: var(--paper); border: 1px solid var(--line); border-radius: 12px; padding: .9rem 1.1rem; box-shadow: 0 1px 2px rgb(0 0 0 / 4%) } .tile b { display: block; font-size: 1.7rem; line-height: 1.2; letter-spacing: -.02em } .tile span { color: var(--soft); font-size: .85rem }
.tile.workloads b, .tile.well b { color: var(--workloads) } .tile.open b { color: var(--odd) }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; margin: 0; color: var(--soft); font-size: .85rem } .legend i { width: .8rem; height: .8rem; margin: .25rem -.8rem 0 0; border-radius: 3px }
.bar { display: flex; height: 2.3rem; border-radius: 8px; overflow: hidden; background: var(--track); gap: 2px }
.bar .part { flex-basis: 0; min-width: 3px; color: #fff; display: flex; align-items: center; overflow: hidden }
.bar span { padding: 0 .45rem; white-space: nowrap; font-size: .8rem; font-weight: 600 }
.used { display: flex; height: .45rem; margin-top: .3rem; border-radius: 4px; overflow: hidden; background: var(--track) } .used .part { min-width: 2px }
.part.system, i.system { background: var(--system) } .part.kube, i.kube { background: var(--kube) } .part.workloads, i.workloads { background: var(--workloads) }
.part.eviction, i.eviction { background: var(--eviction) } .part.huge, i.huge { background: var(--huge) }
.boxes { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: .9rem; margin-top: .6rem; align-items: start } .levels { display: grid; grid-template-columns: repeat(auto-fit, minmax(6.8rem, 1fr)); gap: .6rem; margin-top: .8rem }
.box { --mine: var(--eviction); border: 1px solid var(--line); border-top: 4px solid var(--mine); border-radius: 8px; padding: .7rem .9rem .8rem } .levels .box { border-top: 1px solid var(--line); padding: .4rem .7rem }
.box.root { border: 0; padding: 0 } .box.system { --mine: var(--system) } .box.kube { --mine: var(--kube) } .box.workloads { --mine: var(--workloads) }
.box em { display: flex; flex-wrap: wrap; justify-content: space-between; gap: .2rem .5rem } @media (min-width: 60rem) { .box.workloads { grid-column: span 2 } } .badge { font-style: normal; padding: 0 .5rem; border: 1px solid var(--line); border-radius: 1rem; font-size: .78rem } .badge.true, .badge.cpu { background: var(--mine); border-color: var(--mine); color: #fff }
.meter { display: flex; flex-wrap: wrap; justify-content: space-between; column-gap: .6rem; margin: .55rem 0 .15rem; font-size: .85rem } .meter span + span { color: var(--soft) }
.fill { height: .4rem; border-radius: 3px; overflow: hidden; background: var(--track) } .fill i { display: block; height: 100%; background: var(--mine) } .fill i.over { background: var(--bad) }
table { border-collapse: collapse; width: 100%; font-size: .88rem; display: block; overflow-x: auto } tbody { display: table; width: 100% }
th { text-align: left; color: var(--soft); font-weight: normal; font-size: .8rem } td, th { padding: .4rem .9rem .4rem 0; border-bottom: 1px solid var(--line); white-space: nowrap } tr:last-child td { border-bottom: 0 } .number { text-align: right }
td.mark { width: 1.2rem; color: var(--workloads) } td span, .cause { color: var(--soft) } .value, code { font: .85rem ui-monospace, "SF Mono", Menlo, Consolas, monospace } tr.open .mark, tr.open .value { color: var(--odd) }
.remarks { background: var(--oddback); border-color: var(--odd) } .remarks ul { margin: 0; padding-left: 1.2rem } .remarks li { margin: .3rem 0 } .remarks li::marker { color: var(--odd) } .problem { color: var(--bad); font-weight: 600 }
</style>
`
