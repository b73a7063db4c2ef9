package cgroup

import (
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/cgroup/ledger"
)

// makeRoom prepares a version 2 group for a lower memory.max. A write of
// memory.max below the present use lets the kernel kill after a few rounds of
// reclaim. A write of memory.high reclaims as hard, and kills no process; so that
// goes first, and memory.high gets its old value back.
func (g *Group) makeRoom(n *node, value string) error {
	limit, ok := parseUint([]byte(value))
	if !ok {
		return nil // "max", or something that the kernel will judge
	}
	use, ok := g.number(n, "memory.current")
	if !ok || use <= limit {
		return nil
	}
	var buf [32]byte
	text, err := g.read(n, "memory.high", buf[:])
	if err != nil {
		return nil // the write of memory.max does it alone
	}
	high := strings.TrimSpace(string(text))
	if now, ok := parseUint([]byte(high)); ok && now <= limit {
		return nil
	}
	if err := g.write(n, "memory.high", value); err != nil {
		return err
	}
	return g.write(n, "memory.high", high)
}

// memoryHint says what a refused limit ran into.
func (g *Group) memoryHint(n *node, w ledger.Write) string {
	file := "memory.usage_in_bytes"
	if w.V2 {
		file = "memory.current"
	}
	hint := ""
	if use, ok := g.number(n, file); ok {
		hint = "the cgroup uses " + strconv.FormatUint(use, 10) + " bytes now"
	}
	if !w.V2 && familyOf(w.File) == "memory" {
		var buf [32]byte
		// Where there is no such limit, the kernel shows a number of 19 digits.
		if text, err := g.read(n, "memory.memsw.limit_in_bytes", buf[:]); err == nil {
			if both := parseAmount(text); both != nil && *both != NoLimit {
				hint += ", and memory and swap together may use " + strconv.FormatUint(*both, 10)
			}
		}
	}
	return hint
}

// number reads a file with one number; false if there is none.
func (g *Group) number(n *node, file string) (uint64, bool) {
	var buf [32]byte
	text, err := g.read(n, file, buf[:])
	if err != nil {
		return 0, false
	}
	return parseUint([]byte(strings.TrimSpace(string(text))))
}
