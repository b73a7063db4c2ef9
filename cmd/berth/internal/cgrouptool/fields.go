package cgrouptool

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/cgroup/ledger"
)

// field reads a field of the OCI resources as this host holds it, in the
// spec's own units; known says whether there is such a field.
func (t *Tools) field(g *cgroup.Group, name string) (text string, known bool, err error) {
	entry, item, known := entryOf(name)
	if !known {
		return "", false, nil
	}
	place, v2 := &entry.V1, false
	if h := t.Host.Controller(entry.V2.Controller); h != nil && h.Version == 2 && len(entry.V2.Files) > 0 {
		place, v2 = &entry.V2, true
	}
	for _, file := range place.Files {
		file = strings.ReplaceAll(file, "<size>", item)
		if file == "devices.allow" {
			file = "devices.list" // the file to read
		}
		if !t.HasFile(g, file) {
			continue
		}
		values, err := t.Get(g, []string{file})
		if err != nil {
			return "", true, err
		}
		text := values[0].Text
		if strings.Contains(entry.Field, "*") && !strings.HasPrefix(entry.Field, "/hugepageLimits") {
			return items(entry.Field, file, text, item), true, nil
		}
		text, err = t.inSpecUnits(g, entry.Field, file, text, v2)
		return text, true, err
	}
	if len(place.Files) == 0 {
		return "", true, fmt.Errorf("%s: %s", name, place.Missing)
	}
	return "", true, fmt.Errorf("%s: %s has no %s", name, g.Path(), strings.ReplaceAll(strings.Join(place.Files, " and no "), "<size>", item))
}

// entryOf finds the row of a field. What a list in the spec is for has its name within: the size in
// hugepageLimits.2MB, the device in rdma.mlx5_0.hcaHandles, the interface in
// network.priorities.eth0. Without it the whole list is meant.
func entryOf(name string) (entry ledger.Entry, item string, known bool) {
	for _, e := range ledger.Table() {
		if strings.HasPrefix(e.Field, "/unified") {
			continue
		}
		before, after, list := strings.Cut(e.Field, "/*")
		before, after = fieldName(before), fieldName(after)
		switch rest, inside := strings.CutPrefix(name, before+"."); {
		case name == before && (!list || before != "hugepageLimits"):
			return e, "", true
		case !list || !inside:
		case after == "limit": // hugepageLimits.2MB is what set calls it
			return e, rest, true
		case after == "":
			return e, rest, true
		default:
			if item, found := strings.CutSuffix(rest, "."+after); found && item != "" {
				return e, item, true
			}
		}
	}
	return entry, "", false
}

// inSpecUnits turns what a file holds into the value of the field.
func (t *Tools) inSpecUnits(g *cgroup.Group, field, file, text string, v2 bool) (string, error) {
	number := func(text string) (int64, error) {
		n, err := parseLimit(text)
		if err != nil {
			return 0, fmt.Errorf("%s holds %q, which is not a number", file, text)
		}
		return n, nil
	}
	switch field {
	case "/devices":
		return "allow " + strings.ReplaceAll(text, "\n", ", allow "), nil
	case "/memory/disableOOMKiller":
		return keyed(text, "oom_kill_disable"), nil
	case "/memory/limit", "/memory/reservation", "/memory/kernel", "/memory/kernelTCP", "/pids/limit", "/hugepageLimits/*/limit":
		n, err := number(text)
		return strconv.FormatInt(n, 10), err
	case "/memory/swap":
		n, err := number(text)
		if err != nil || !v2 {
			return strconv.FormatInt(n, 10), err
		}
		values, err := t.Get(g, []string{"memory.max"})
		if err != nil {
			return "", err
		}
		limit, err := number(values[0].Text)
		return strconv.FormatInt(ledger.SwapToV1(n, limit), 10), err
	}
	if !v2 {
		return text, nil
	}
	switch field {
	case "/cpu/shares":
		n, err := number(text)
		return strconv.FormatUint(ledger.WeightToShares(uint64(n), t.Host.Shares), 10), err
	case "/cpu/quota", "/cpu/period":
		quota, period, _ := strings.Cut(text, " ")
		if field == "/cpu/period" {
			return period, nil
		}
		n, err := number(quota)
		return strconv.FormatInt(n, 10), err
	case "/blockIO/weight":
		weight := keyed(text, "default")
		if file != "io.weight" {
			return weight, nil
		}
		n, err := number(weight)
		return strconv.FormatUint(ledger.IOToBlkioWeight(uint64(n)), 10), err
	}
	return text, nil
}

// keyed finds the value behind a key in "KEY VALUE" lines.
func keyed(text, key string) string {
	for line := range strings.Lines(text) {
		if value, found := strings.CutPrefix(line, key+" "); found {
			return strings.TrimSpace(value)
		}
	}
	return strings.TrimSpace(text)
}

// parseLimit reads a number, where "max" and what version 1 shows for no limit
// (its greatest page count, of pages up to 64 KiB) are -1.
func parseLimit(text string) (int64, error) {
	if text == "max" {
		return -1, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if n >= math.MaxInt64&^(64<<10-1) {
		n = -1
	}
	return n, err
}
