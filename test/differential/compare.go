package main

import (
	"slices"
	"strings"
)

// What stands for a fact that is not there, and for one of an engine that is not.
const (
	none   = "(none)"
	notRun = "(not run)"
)

// steps are the facts that tell how far a run came.
var steps = []string{"create.code", "start.code", "report", "exec.code", "command.code"}

// compare finds what differs between the facts of Berth and of its peers. What runc does is the
// measure, because every client was written for it; crun's stands in where runc is not there.
func compare(facts map[string]map[string]string, layout string, lines []string) (found []difference) {
	ours, runc, crun := facts["berth"], facts["runc"], facts["crun"]
	at := func(m map[string]string, key string) string {
		if m == nil {
			return notRun
		}
		if value, ok := m[key]; ok {
			return value
		}
		return none
	}
	add := func(key string) {
		found = append(found, difference{key, at(ours, key), at(runc, key), at(crun, key), layout, lines})
	}
	measure := runc
	if measure == nil {
		measure = crun
	}
	if measure == nil {
		return nil
	}
	// How far it came: where that differs, all that follows from it is no news, but for what Berth
	// leaves behind.
	for _, step := range steps {
		if at(ours, step) == at(measure, step) {
			continue
		}
		add(step)
		for key := range ours {
			if strings.HasPrefix(key, "left ") && !strings.HasPrefix(key, "left file ") && at(ours, key) != at(measure, key) {
				add(key)
			}
		}
		return sorted(found)
	}
	keys := map[string]bool{}
	// Of a config that all refuse, what came first is chance, and what was done until then is each
	// one's own way.
	for _, step := range []string{"create.code", "start.code"} {
		if code, there := ours[step]; there && code != "0" {
			says := strings.TrimSuffix(step, "code") + "says"
			if len(lines) == 1 && at(ours, says) != at(measure, says) {
				add(says)
			}
			for key := range ours {
				if strings.HasPrefix(key, "left ") && at(ours, key) != at(measure, key) {
					add(key)
				}
			}
			return sorted(found)
		}
	}
	for key := range ours {
		keys[key] = true
	}
	for key := range measure {
		keys[key] = true
	}
	for key := range keys {
		// What the container's process already shows is no news of a second one.
		if first, isExec := strings.CutPrefix(key, "exec."); isExec && at(ours, first) == at(ours, key) && at(measure, first) == at(measure, key) {
			continue
		}
		if key[0] != '~' && at(ours, key) != at(measure, key) {
			add(key)
		}
	}
	return sorted(found)
}

func sorted(d []difference) []difference {
	slices.SortFunc(d, func(a, b difference) int { return strings.Compare(a.Key, b.Key) })
	return d
}
