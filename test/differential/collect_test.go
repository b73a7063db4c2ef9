package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A collector gathers the differences of all runs, the same ones together.
type collector struct {
	sync.Mutex
	rows    []*row
	runs    int
	layouts map[string]int
	groups  map[string]*group
	errors  []string
	kept    *json.Encoder // or nil: of all differences, those that are explained as well
}

// A keeping is a line of the file that BERTH_DIFFERENTIAL_KEEP names: by BERTH_DIFFERENTIAL_AGAIN
// the table is tried on all of them again, without running anything.
type keeping struct {
	Difference difference
	Messages   string
}

// A group is differences with the same values, of which the smallest config is shown.
type group struct {
	difference
	count    int
	layouts  map[string]bool
	messages string
}

// size is that of the config; one that crun was not run with counts as larger than any.
func (g *group) size() int {
	size := len(strings.Join(g.Lines, "\n"))
	if g.Crun == notRun {
		size += 1 << 20
	}
	return size
}

func newCollector(rows []*row) *collector {
	return &collector{rows: rows, layouts: map[string]int{}, groups: map[string]*group{}}
}

// keep opens the file that all differences are kept in.
func (c *collector) keep(t *testing.T, path string) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	c.kept = json.NewEncoder(f)
}

// again takes what an earlier run has kept.
func (c *collector) again(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	decoder := json.NewDecoder(f)
	for {
		var k keeping
		if err := decoder.Decode(&k); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		c.add(k.Difference, k.Messages)
	}
}

func (c *collector) take(t task, outcomes []outcome, err error) {
	c.Lock()
	defer c.Unlock()
	c.runs++
	c.layouts[t.layout.Name]++
	lines := t.job.Lines
	if t.job.Command != nil {
		lines = t.job.Command
	}
	if err != nil {
		c.errors = append(c.errors, fmt.Sprintf("%s: %q: %v", t.layout.Name, lines, err))
		return
	}
	all := map[string]map[string]string{}
	messages := ""
	for _, o := range outcomes {
		if o.Error != "" {
			c.errors = append(c.errors, fmt.Sprintf("%s, %s: %q: %s", t.layout.Name, o.Engine, lines, o.Error))
			return
		}
		all[o.Engine] = o.Facts
		for key, value := range o.Facts {
			if key[0] == '~' {
				messages += fmt.Sprintf("      %s %s: %s\n", o.Engine, key[1:], strings.ReplaceAll(value, "\n", " / "))
			}
		}
	}
	if onlyLines != "" {
		dump(t.layout.Name, all)
	}
	for _, d := range compare(all, t.layout.Name, lines) {
		if c.kept != nil {
			if err := c.kept.Encode(keeping{d, messages}); err != nil {
				c.errors = append(c.errors, err.Error())
			}
		}
		c.add(d, messages)
	}
}

// decisive are the facts that tell whether something works at all.
var decisive = regexp.MustCompile(`^(create|start|exec|delete|command|after|report|exit|state)`)

var digits = regexp.MustCompile(`\b\d+\b`)

func (c *collector) add(d difference, messages string) {
	for _, r := range c.rows {
		if r.names(d) {
			r.matched++
			return
		}
	}
	values := strings.Join([]string{d.Key, digits.ReplaceAllString(d.Ours, "N"), digits.ReplaceAllString(d.Runc, "N")}, "\x00") + "\x00"
	key := values
	if decisive.MatchString(d.Key) {
		// Whether something works at all is another thing for each config, and for those that a
		// smaller one is part of the same.
		key += strings.Join(d.Lines, "\n")
		for _, line := range d.Lines {
			if c.groups[values+line] != nil {
				key = values + line
			}
		}
	}
	g := c.groups[key]
	if g == nil || g.size() > (&group{difference: d}).size() {
		fresh := &group{difference: d, layouts: map[string]bool{}, messages: messages}
		if g != nil {
			fresh.count, fresh.layouts = g.count, g.layouts
		}
		c.groups[key] = fresh
		g = fresh
	}
	g.count++
	g.layouts[d.Layout] = true
}

// report fails the test for what nobody has explained, and in a whole run for explanations of what
// is no more.
func (c *collector) report(t *testing.T, left int) {
	t.Logf("%d runs, %d not begun: %v", c.runs, left, c.layouts)
	if whole {
		var where []string
		for _, l := range slices.Sorted(maps.Keys(c.layouts)) {
			where = append(where, fmt.Sprintf("%s %d", l, c.layouts[l]))
		}
		// test/differential/whole keeps it.
		fmt.Printf("COUNT %s: %d runs (%s); differences that are not explained: %d\n", t.Name(), c.runs, strings.Join(where, ", "), len(c.groups))
	}
	for _, e := range c.errors {
		t.Errorf("could not be run: %s", e)
	}
	groups := []*group{}
	for _, g := range c.groups {
		groups = append(groups, g)
	}
	slices.SortFunc(groups, func(a, b *group) int {
		return strings.Compare(a.Key+a.Ours+strings.Join(a.Lines, ""), b.Key+b.Ours+strings.Join(b.Lines, ""))
	})
	for _, g := range groups {
		var where []string
		for l := range g.layouts {
			where = append(where, l)
		}
		slices.Sort(where)
		t.Errorf("%s: %d times: berth %q, runc %q, crun %q\n   in %s\n   %s\n%s",
			g.Key, g.count, g.Ours, g.Runc, g.Crun, strings.Join(where, " "), strings.Join(g.Lines, "\n   "), g.messages)
	}
}

// stale fails the test for rows of the table that matched nothing, of those for layouts that there
// were. In a guest, where rows may be for its kernel alone, a share is run at most.
func stale(t *testing.T, rows []*row, where []Layout) {
	for _, r := range rows {
		here := r.layout == nil || slices.ContainsFunc(where, func(l Layout) bool {
			return slices.ContainsFunc(r.layout, func(p *regexp.Regexp) bool { return p.MatchString(l.Name) })
		})
		if here && !r.guest && r.matched == 0 {
			t.Errorf("table.txt: %s: there is no such difference any more", r.title)
		}
	}
}

// dump writes all facts, for one who looks at a single config.
func dump(layout string, all map[string]map[string]string) {
	for name, f := range all {
		var lines []string
		for key, value := range f {
			lines = append(lines, fmt.Sprintf("%s\t%q", key, value))
		}
		slices.Sort(lines)
		file := os.Getenv("BERTH_DIFFERENTIAL_DUMP")
		if file != "" {
			os.WriteFile(file+"."+strings.ReplaceAll(layout, "/", "-")+"."+name, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
		}
	}
}
