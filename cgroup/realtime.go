package cgroup

import (
	"errors"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Version 1 gives a new group no real-time at all (cpu.rt_runtime_us is 0), and
// refuses a child more than its parent has left, counted as a share of the
// period. So what a group asks for has to be there in all its parents.

// raiseRealtime gives the parents that are ours as much real-time as a write of
// cpu.rt_runtime_us or cpu.rt_period_us asks for on top of what they have.
func (g *Group) raiseRealtime(n *node, file, value string, past *past) error {
	now, nowPeriod, err := realtimeOf(n)
	if err != nil {
		return err
	}
	asked, ok := parseUint([]byte(value))
	if !ok {
		return unix.EINVAL
	}
	want, period := asked, nowPeriod
	if file == "cpu.rt_period_us" {
		want, period = now, asked
	}
	// Shares are compared with their periods multiplied crosswise.
	if nowPeriod == 0 || want > period || want*nowPeriod <= now*period {
		return unix.EINVAL
	}
	var parents []string
	for at := parentOf(n.path); at != "/" && (n.owns(at) || at == place || g.force); at = parentOf(at) {
		parents = append(parents, at)
	}
	if len(parents) == 0 {
		return unix.EINVAL
	}
	// From the top down: each needs its own parent to have room.
	for i := len(parents) - 1; i >= 0; i-- {
		at := node{Hierarchy: n.Hierarchy, path: parents[i]}
		have, parentPeriod, err := realtimeOf(&at)
		if err != nil {
			return err
		}
		gain := (want*nowPeriod - now*period) * parentPeriod / (period * nowPeriod)
		more := strconv.FormatUint(have+gain+1, 10)
		file := at.full(n.file("cpu.rt_runtime_us"))
		if err := writeFile(unix.AT_FDCWD, file, more); err != nil {
			return &Error{Op: "write", Path: file, Value: more, Err: err, Hint: realtimeHint(&at)}
		}
		past.note(held{file, strconv.FormatUint(have, 10)})
	}
	return nil
}

// realtimeOf reads what a group has, in microseconds of a period of microseconds.
func realtimeOf(n *node) (runtime, period uint64, err error) {
	if runtime, err = numberAt(n.full(n.file("cpu.rt_runtime_us"))); err == nil {
		period, err = numberAt(n.full(n.file("cpu.rt_period_us")))
	}
	return runtime, period, err
}

// numberAt reads a file with one number.
func numberAt(path string) (uint64, error) {
	text, err := readRecord(unix.AT_FDCWD, path, make([]byte, 32))
	if err != nil {
		return 0, &Error{Op: "read", Path: path, Err: err}
	}
	number, ok := parseUint([]byte(strings.TrimSpace(string(text))))
	if !ok {
		return 0, &Error{Op: "read", Path: path, Err: errors.New("it holds no number")}
	}
	return number, nil
}

func realtimeHint(n *node) string {
	return "all groups of a parent together may not have more real-time than it has" + parentHolds(n, n.file("cpu.rt_runtime_us"))
}
