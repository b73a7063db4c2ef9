package main

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

//go:embed table.txt
var tableText string

// A row of the table is a difference that is meant: which, and why it is at least as good as what
// the peers do.
type row struct {
	title, verdict, why string
	keys, when, layout  []*regexp.Regexp  // one of each must match; when is about the lines of the config
	ours, runc, crun    []*regexp.Regexp  // the values
	shown               map[string]string // keys, when, … as they are written, for the page
	guest               bool              // there is no such difference but in a guest
	matched             int
}

// verdicts are what a row can say of a difference.
var verdicts = []string{"better", "equal", "open"}

// readTable reads rows: "== TITLE", then "NAME: VALUE" lines, of which "why" goes on over the lines
// behind it.
func readTable(text string) ([]*row, error) {
	var rows []*row
	last := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		title, isTitle := strings.CutPrefix(line, "== ")
		name, value, isPair := strings.Cut(line+" ", ": ")
		value = strings.TrimSpace(value)
		switch {
		case line == "" || line[0] == '#':
			last = ""
		case isTitle:
			rows = append(rows, &row{title: title, shown: map[string]string{}})
		case len(rows) == 0:
			return nil, fmt.Errorf("table.txt: %q stands before the first row", line)
		case last == "why" && !isPair || last == "why" && !isName(name):
			rows[len(rows)-1].why += " " + line
		case !isPair || !isName(name):
			return nil, fmt.Errorf("table.txt: %s: what is %q?", rows[len(rows)-1].title, line)
		default:
			if err := rows[len(rows)-1].set(name, value); err != nil {
				return nil, err
			}
			last = name
		}
	}
	for _, r := range rows {
		if r.why == "" || r.keys == nil || !slices.Contains(verdicts, r.verdict) {
			return nil, fmt.Errorf("table.txt: %s: wants keys, why, and a verdict: %s", r.title, strings.Join(verdicts, ", "))
		}
	}
	return rows, nil
}

func isName(name string) bool {
	return strings.Contains(" keys when layout guest ours runc crun verdict why ", " "+name+" ")
}

func (r *row) set(name, value string) (err error) {
	r.shown[name] = value
	switch name {
	case "why":
		r.why = value
	case "verdict":
		r.verdict = value
	case "keys":
		r.keys, err = patterns(value)
	case "when":
		r.when, err = patterns(value)
	case "guest":
		if r.guest = value == "only"; !r.guest {
			err = fmt.Errorf("guest: %s, want only", value)
		}
	case "layout":
		r.layout, err = patterns(value)
	case "ours":
		r.ours, err = patterns(value)
	case "runc":
		r.runc, err = patterns(value)
	case "crun":
		r.crun, err = patterns(value)
	}
	return err
}

// patterns are several, with " | " between them.
func patterns(value string) (all []*regexp.Regexp, err error) {
	for _, word := range strings.Split(value, " | ") {
		p, err := pattern(word)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// pattern is a text in which "*" stands for anything; "(none)" is a fact that is not there, and two
// quotes are an empty one.
func pattern(value string) (*regexp.Regexp, error) {
	if value == `""` {
		value = ""
	}
	parts := strings.Split(value, "*")
	for i, part := range parts {
		parts[i] = regexp.QuoteMeta(part)
	}
	return regexp.Compile("(?s)^" + strings.Join(parts, ".*") + "$")
}

// A difference is a fact that is not the same under Berth and its peers.
type difference struct {
	Key, Ours, Runc, Crun string
	Layout                string
	Lines                 []string
}

func (r *row) names(d difference) bool {
	any := func(patterns []*regexp.Regexp, texts ...string) bool {
		for _, p := range patterns {
			for _, text := range texts {
				if p.MatchString(text) {
					return true
				}
			}
		}
		return patterns == nil
	}
	// What a command has added to a container sees the same as what the config runs.
	return any(r.keys, d.Key, strings.TrimPrefix(d.Key, "inside ")) && any(r.when, d.Lines...) && any(r.layout, d.Layout) && any(r.ours, d.Ours) && any(r.runc, d.Runc) && any(r.crun, d.Crun)
}
