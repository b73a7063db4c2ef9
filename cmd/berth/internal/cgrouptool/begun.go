package cgrouptool

import (
	"slices"
	"strings"
	"unicode"
)

// Begun lists the cgroups that text may be the beginning of, as the command line names them, for
// completion: one level, and once more with a slash where others are below. Names that can't be
// typed are left out.
func (t *Tools) Begun(text string) []string {
	lead, path := "", text
	target, err := ParseTarget(text + "x") // so that it has a path
	if err != nil {
		return nil
	}
	if target.Controllers != nil || strings.HasPrefix(text, "*:") {
		lead, path, _ = strings.Cut(text, ":")
		lead += ":"
	}
	at := path[:strings.LastIndexByte(path, '/')+1]
	var dir string
	if at == "" {
		if dir, err = t.Host.Base(); dir == "/" {
			dir = DefaultHome
		}
	} else {
		target.Path = at
		dir, _, err = t.resolve(target)
	}
	if err != nil {
		return nil
	}
	meant := homes(t.Host, target.Controllers)
	var list []string
	for _, h := range t.Host.Hierarchies() {
		if meant != nil && !slices.ContainsFunc(meant, func(name string) bool { return t.Host.Controller(name) == h || name == h.String() }) {
			continue
		}
		names, err := t.children(t.dir(h, dir))
		if err != nil {
			continue
		}
		for _, name := range names {
			if !strings.HasPrefix(at+name, path) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
				continue
			}
			list = append(list, lead+at+name)
			if inner, err := t.children(t.dir(h, below(dir, name))); err == nil && len(inner) > 0 {
				list = append(list, lead+at+name+"/")
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
