package task

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Describe tells the state of every container and process, a line for each, for
// people who want to know why a shim does not do what it should. It waits for no
// lock for long: that one is held may be the very reason.
func (s *Service) Describe() []byte {
	if !lockSoon(&s.mu) {
		return []byte("the containers are locked\n")
	}
	all := make([]*container, 0, len(s.containers))
	for _, c := range s.containers {
		all = append(all, c)
	}
	b := append([]byte("containers: "), strconv.Itoa(len(all))...)
	b = strconv.AppendInt(append(b, ", announced: "...), int64(len(s.expected)), 10)
	b = strconv.AppendBool(append(b, ", asked to leave: "...), s.asked)
	b = append(b, '\n')
	s.mu.Unlock()
	slices.SortFunc(all, func(x, y *container) int { return strings.Compare(x.id, y.id) })
	for _, c := range all {
		b = c.describe(b)
	}
	return b
}

func (c *container) describe(b []byte) []byte {
	b = strconv.AppendQuote(append(b, "container "...), c.id)
	b = strconv.AppendQuote(append(b, " in "...), c.bundle)
	if !c.change.TryLock() {
		b = append(b, ", being changed by a call"...)
	} else {
		c.change.Unlock()
	}
	if !lockSoon(&c.mu) {
		return append(b, ", locked\n"...)
	}
	defer c.mu.Unlock()
	b = c.init.describe(append(b, '\n'))
	ids := make([]string, 0, len(c.execs))
	for id := range c.execs {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		b = c.execs[id].describe(b)
	}
	return b
}

// describe says how a process is. The container's lock must be held.
func (p *process) describe(b []byte) []byte {
	b = append(b, "  init"...)
	if p.execID != "" {
		b = strconv.AppendQuote(append(b[:len(b)-len("init")], "exec "...), p.execID)
	}
	b = append(append(b, ": "...), p.status().String()...)
	b = strconv.AppendInt(append(b, ", pid "...), int64(p.pid), 10)
	if p.ended {
		b = strconv.AppendInt(append(b, ", ended with status "...), int64(p.exit.Status), 10)
		b = append(append(b, " at "...), p.exit.At.Format(time.RFC3339Nano)...)
	}
	for _, stream := range []struct{ name, path string }{
		{"stdin", p.config.Stdin}, {"stdout", p.config.Stdout}, {"stderr", p.config.Stderr},
	} {
		if stream.path != "" {
			b = strconv.AppendQuote(append(append(append(b, ", "...), stream.name...), ' '), stream.path)
		}
	}
	return append(b, '\n')
}

// lockSoon takes a lock that is held for moments only, unless it is stuck.
func lockSoon(l *sync.Mutex) bool {
	for range 100 {
		if l.TryLock() {
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return false
}
