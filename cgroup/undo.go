package cgroup

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-runtime/berth/cgroup/ledger"
	"golang.org/x/sys/unix"
)

// past is what files held before a change wrote to them: a change that ends
// halfway is taken back, so that a refused update leaves the limits as they were.
// A nil past remembers nothing.
type past []held

type held struct {
	path string // of the file
	text string // what brings it back to what it was
}

// inversion reads what a file holds that is about to be written to. A file that
// cannot be read is an order to the kernel, as memory.reclaim, and cannot be
// taken back.
func inversion(n *node, w ledger.Write, p *past) held {
	if p == nil {
		return held{}
	}
	path := n.full(n.file(w.File))
	text, err := readRecord(unix.AT_FDCWD, path, make([]byte, 1024))
	if err != nil {
		return held{}
	}
	old, ok := inverse(w.File, w.Value, string(text))
	if !ok {
		return held{}
	}
	return held{path, old}
}

// note remembers what was there before a write that has succeeded.
func (p *past) note(h held) {
	if p != nil && h.path != "" {
		*p = append(*p, h)
	}
}

// restore puts back what was there, the last change first: each step then leads
// to a state that the kernel has allowed before. It goes on after a failure, and
// tells of all.
func (p past) restore() error {
	var failed []error
	for _, h := range slices.Backward(p) {
		if err := writeFile(unix.AT_FDCWD, h.path, h.text); err != nil {
			failed = append(failed, &Error{Op: "put back", Path: h.path, Value: h.text, Err: err})
		}
	}
	return errors.Join(failed...)
}

// takenBack restores what a change has done that failed with err.
func takenBack(err error, restore func() error) error {
	if undo := restore(); undo != nil {
		return fmt.Errorf("%w; not all earlier changes could be undone: %w", err, undo)
	}
	return err
}

// inverse says what is to be written to a file to have it as it was, after a
// value is written to it where text stood. Most files take what they show.
func inverse(file, value, text string) (string, bool) {
	text = strings.TrimSpace(text)
	switch {
	case file == "memory.oom_control":
		// It shows lines of facts, and takes the digit of the first alone.
		fields := strings.Fields(text)
		if len(fields) < 2 || fields[0] != "oom_kill_disable" {
			return "", false
		}
		return fields[1], true
	case file == "cpuset.cpus.partition":
		// The kernel may add in brackets why a partition is not valid.
		text, _, _ = strings.Cut(text, " ")
	case keyed(file):
		return inverseLine(file, value, text)
	case text == "":
		// A write of nothing does not reach the kernel; an empty line does, and
		// empties a cpuset's list.
		text = "\n"
	}
	return text, true
}

// keyed reports whether a file has a line for each device, or interface, of
// which a write changes one.
func keyed(file string) bool {
	switch file {
	case "rdma.max", "misc.max", "dmem.min", "dmem.low", "dmem.max", "net_prio.ifpriomap",
		"blkio.weight_device", "blkio.leaf_weight_device", "blkio.bfq.weight_device":
		return true
	}
	return strings.HasPrefix(file, "blkio.throttle.") || strings.HasPrefix(file, "io.") && file != "io.pressure"
}

// inverseLine is inverse for one line of a keyed file.
func inverseLine(file, value, text string) (string, bool) {
	key, _, several := strings.Cut(strings.TrimSpace(value), " ")
	if !several {
		key = "default" // io.weight takes the default weight also without the word
	}
	for line := range strings.SplitSeq(text, "\n") {
		if first, _, _ := strings.Cut(line, " "); first == key {
			return line, true
		}
	}
	// The key had no line, which means that nothing was set for it.
	switch {
	case file == "io.max":
		return key + " rbps=max wbps=max riops=max wiops=max", true
	case file == "io.latency":
		return key + " target=0", true
	case strings.HasSuffix(file, "weight"), file == "blkio.bfq.weight_device":
		return key + " default", true
	case strings.HasPrefix(file, "blkio."), file == "net_prio.ifpriomap":
		return key + " 0", true
	}
	return "", false
}
