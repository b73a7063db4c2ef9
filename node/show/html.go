package show

import (
	"fmt"
	"html"
	"strings"
	"time"

	"github.com/berth-runtime/berth/node/plan"
	"github.com/berth-runtime/berth/node/resource"
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
	fmt.Fprintf(&b, "<header><h1>Node partition</h1><p>%s · cgroups %s · driver %s · %d settings in force, %d still to be made · %s</p></header>\n<main>\n",
		init, html.EscapeString(n.Plan.Facts.Mode), html.EscapeString(string(n.Plan.Driver)), n.Applied, len(n.Plan.Changes()), at.UTC().Format("2006-01-02 15:04:05 UTC"))
	remarks(&b, n.Plan)
	b.WriteString("<section><h2>How each resource is shared out</h2>\n<p class=legend>" +
		"<i class=system></i>system <i class=kube></i>kube <i class=workloads></i>workloads <i class=eviction></i>eviction threshold <i class=huge></i>huge pages</p>\n")
	shares := n.Shares()
	for _, r := range n.Plan.Resources {
		f := r.Name.Human
		fmt.Fprintf(&b, "<div class=resource id=%q><h3>%s <small>%s</small></h3><div class=bar>", "resource-"+html.EscapeString(string(r.Name)), html.EscapeString(string(r.Name)), f(r.Capacity))
		for _, p := range []struct {
			class  string
			amount int64
		}{{"system", r.System}, {"kube", r.Kube}, {"workloads", r.Allocatable}, {"eviction", r.Eviction}, {"huge", r.HugePages}} {
			if p.amount > 0 && r.Capacity > 0 {
				fmt.Fprintf(&b, "<div class=\"part %s\" style=\"flex-grow:%.4f\" title=\"%s %s of %s\"><span>%s</span></div>",
					p.class, 1000*float64(p.amount)/float64(r.Capacity), p.class, f(p.amount), f(r.Capacity), f(p.amount))
			}
		}
		b.WriteString("</div>")
		usedBar(&b, r.Name, r.Capacity, shares)
		b.WriteString("</div>\n")
	}
	b.WriteString("</section>\n<section><h2>Hierarchy</h2>\n")
	tree(&b, n)
	b.WriteString("</section>\n<section><h2>Workloads</h2>\n")
	workloads(&b, n)
	b.WriteString("</section>\n<section><h2>Settings</h2>\n")
	settings(&b, n.Plan)
	b.WriteString("</section>\n</main>\n</html>\n")
	return []byte(b.String())
}

// usedBar draws what is used, to the scale of the bar above it.
func usedBar(b *strings.Builder, name resource.Name, capacity int64, shares []Share) {
	known := false
	var used strings.Builder
	var sum int64
	for _, s := range shares {
		amount, ok := s.Used[name]
		known = known || ok
		sum += amount
		if amount > 0 && capacity > 0 {
			fmt.Fprintf(&used, "<div class=\"part %s\" style=\"width:%.3f%%\" title=\"%s uses %s\"></div>",
				html.EscapeString(s.Name), min(100*float64(amount)/float64(capacity), 100), html.EscapeString(s.Name), name.Human(amount))
		}
	}
	if known {
		fmt.Fprintf(b, "<div class=used>%s</div><p class=note>used now: %s</p>", used.String(), name.Human(sum))
	}
}

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
		fmt.Fprintf(b, "<div class=\"box %s\" id=\"place-%s\"><b>%s</b><em>%s, %s</em><ul>", html.EscapeString(s.Name), html.EscapeString(s.Name), html.EscapeString(name), html.EscapeString(s.Name), enforced)
		for _, r := range n.Plan.Resources {
			if s.Reserved[r.Name] == 0 && s.Used[r.Name] == 0 {
				continue
			}
			fmt.Fprintf(b, "<li>%s: ", html.EscapeString(string(r.Name)))
			if used, ok := s.Used[r.Name]; ok {
				fmt.Fprintf(b, "%s used of ", r.Name.Human(used))
			}
			fmt.Fprintf(b, "%s</li>", r.Name.Human(s.Reserved[r.Name]))
		}
		b.WriteString("</ul>")
		if s.Name == string(plan.Workloads) {
			for _, l := range n.Now.Levels {
				if len(n.Now.Levels) > 1 {
					fmt.Fprintf(b, "<div class=box><b>%s</b><em>%d pods, %d containers</em></div>", html.EscapeString(l.Name), l.Pods, l.Containers)
				}
			}
		}
		b.WriteString("</div>\n")
	}
	if n.Now.User != nil {
		fmt.Fprintf(b, "<div class=box><b>user.slice</b><em>sessions of users, counted as system-reserved</em><ul><li>memory: %s used</li></ul></div>\n", resource.Memory.Human(n.Now.User.Memory))
	}
	b.WriteString("</div></div>\n")
}

func workloads(b *strings.Builder, n *Node) {
	b.WriteString("<table><tr><th>QoS level<th>pods<th>containers<th>memory<th>pids</tr>\n")
	for _, l := range n.Now.Levels {
		pods := "–"
		if n.Plan.Config.CgroupsPerQoS {
			pods = fmt.Sprint(l.Pods)
		}
		fmt.Fprintf(b, "<tr><td>%s<td>%s<td>%d<td>%s<td>%d</tr>\n", html.EscapeString(l.Name), pods, l.Containers, resource.Memory.Human(l.Use.Memory), l.Use.PIDs)
	}
	b.WriteString("</table>\n")
	if n.Now.Kubelet != "" {
		fmt.Fprintf(b, "<p class=note>The kubelet is in %s.</p>\n", html.EscapeString(n.Now.Kubelet))
	}
}

func settings(b *strings.Builder, p *plan.Plan) {
	b.WriteString("<table><tr><th>what<th>wanted<th>now<th>because of</tr>\n")
	for _, s := range p.Steps {
		mark := "done"
		if !s.Done() {
			mark = "open"
		}
		now := s.Now
		if s.Kind == plan.SetProperty && s.Now == s.Value && !s.Done() {
			now = s.FileNow
		}
		fmt.Fprintf(b, "<tr class=%s><td>%s %s<td>%s<td>%s<td>%s</tr>\n", mark, html.EscapeString(s.Target), html.EscapeString(s.Name),
			html.EscapeString(s.Value), html.EscapeString(now), html.EscapeString(s.Cause))
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
:root { --paper: #fff; --ink: #1b1f24; --soft: #667; --line: #d5d9e0; --system: #2f6fb5; --kube: #c2791b; --workloads: #2e8b57; --eviction: #9aa3ad; --huge: #7d5ba6; color-scheme: light dark }
@media (prefers-color-scheme: dark) { :root { --paper: #14171b; --ink: #e8eaed; --soft: #9aa3ad; --line: #343a42; --system: #5a9be0; --kube: #e0a04a; --workloads: #55b883; --eviction: #6b747e; --huge: #a98ad0 } }
body { margin: 0 auto; max-width: 70rem; padding: 1.5rem; background: var(--paper); color: var(--ink); font: 16px/1.45 system-ui, sans-serif }
h1 { margin: 0; font-size: 1.6rem } h2 { margin: 2rem 0 .6rem; font-size: 1.15rem } h3 { margin: 1rem 0 .25rem; font-size: 1rem } small { color: var(--soft); font-weight: normal }
header p, .note, em { color: var(--soft); margin: .2rem 0; font-style: normal; font-size: .9rem }
.legend i { display: inline-block; width: .9rem; height: .9rem; margin: 0 .35rem 0 1rem; vertical-align: -.1rem; border-radius: 3px }
.bar { display: flex; height: 2.4rem; border-radius: 6px; overflow: hidden; background: var(--line); gap: 1px }
.bar .part { flex-basis: 0; min-width: 3px; color: #fff; display: flex; align-items: center; overflow: hidden }
.bar span { padding: 0 .5rem; white-space: nowrap; font-size: .85rem }
.used { display: flex; height: .7rem; margin-top: .25rem; border-radius: 4px; overflow: hidden; background: var(--line) }
.used .part { min-width: 2px }
.part.system, i.system { background: var(--system) } .part.kube, i.kube { background: var(--kube) } .part.workloads, i.workloads { background: var(--workloads) }
.part.eviction, i.eviction { background: var(--eviction) } .part.huge, i.huge { background: var(--huge) }
.boxes { display: grid; grid-template-columns: repeat(auto-fit, minmax(14rem, 1fr)); gap: .8rem; margin-top: .6rem }
.box { border: 1px solid var(--line); border-left: 5px solid var(--line); border-radius: 6px; padding: .6rem .8rem; margin-top: .3rem } .root { border-left-width: 1px }
.box.system { border-left-color: var(--system) } .box.kube { border-left-color: var(--kube) } .box.workloads { border-left-color: var(--workloads) }
.box em { display: block } .box ul { margin: .4rem 0 0; padding-left: 1.1rem; font-size: .9rem }
table { border-collapse: collapse; width: 100%; font-size: .9rem; display: block; overflow-x: auto } th { text-align: left; color: var(--soft); font-weight: normal } td, th { padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line) }
tr.open td { color: var(--kube); font-weight: 600 } .remarks li { margin: .25rem 0 } .problem { color: #d1423a; font-weight: 600 }
</style>
`
