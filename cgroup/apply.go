package cgroup

import (
	"errors"
	"strings"

	"github.com/berth-runtime/berth/cgroup/ledger"
	"golang.org/x/sys/unix"
)

// Difference is a value that the kernel took otherwise than it was written: it
// rounds memory limits to pages, and clamps shares and lists of processors.
type Difference struct {
	Pointer string // the entry of the resources object
	Path    string // the file
	Wrote   string
	Holds   string
}

func (d Difference) String() string {
	return d.Pointer + ": " + d.Path + " holds " + d.Holds + " where " + d.Wrote + " was written"
}

// Apply makes the writes of a translation, in their order, and tells what the
// kernel took otherwise. Where the order turns out wrong for what the group
// has (a pair of values that must not cross), the pair is written the other
// way round; version 2 controllers that are not enabled are enabled. After an
// error the writes before it stand; Change takes them back.
func (g *Group) Apply(writes []ledger.Write) ([]Difference, error) {
	return g.apply(writes, nil)
}

// apply is Apply, and notes in past what there was before.
func (g *Group) apply(writes []ledger.Write, past *past) ([]Difference, error) {
	var differences []Difference
	queue := make([]ledger.Write, len(writes))
	copy(queue, writes)
	deferred := 0
	var first error        // of the writes that are put off
	var taken ledger.Write // the last that the kernel took
	for len(queue) > 0 {
		w := queue[0]
		n, err := g.nodeOf(w)
		if err != nil {
			return differences, err
		}
		got, err := g.applyOne(n, w, past)
		if err == unix.EOPNOTSUPP && sameWeight(w, taken) {
			queue = queue[1:]
			continue
		}
		if len(queue) > 1 && (err == unix.EOPNOTSUPP && sameWeight(w, queue[1]) || err == unix.ENOENT && onlyBFQ(w, queue[1])) {
			queue = queue[1:]
			queue[0].Optional = false // now that no one else has it
			continue
		}
		if err != nil {
			// The kernel refuses a step that crosses its partner: take the
			// partners first, each of them at most once.
			if deferred == 0 {
				first = g.explainWrite(n, w, err)
			}
			if others, last := partners(queue); deferred < others && errors.Is(err, unix.EINVAL) {
				copy(queue, queue[1:last+1])
				queue[last] = w
				deferred++
				continue
			}
			return differences, first
		}
		deferred = 0
		if w.ReadBack && got != "" {
			if same, _ := w.Took(got); !same {
				differences = append(differences, Difference{
					Pointer: w.Pointer, Path: n.full(n.file(w.File)), Wrote: w.Value, Holds: strings.TrimSpace(got),
				})
			}
		}
		taken = w
		queue = queue[1:]
	}
	return differences, nil
}

// sameWeight says whether two writes are one disk's weight for the two that divide disks by
// weights, iocost and BFQ. A disk has the one, the other, or none, and takes only the weight of
// what it has (EOPNOTSUPP of blkg_conf_prep).
func sameWeight(a, b ledger.Write) bool {
	return a.Pointer == b.Pointer && a.File != b.File && isDiskWeight(a) && isDiskWeight(b)
}

// onlyBFQ says whether two writes are one weight of a kernel that may have been built without
// iocost.
func onlyBFQ(a, b ledger.Write) bool {
	return a.V2 && b.V2 && a.Pointer == b.Pointer && a.File == "io.weight" && b.File == "io.bfq.weight"
}

func isDiskWeight(w ledger.Write) bool {
	return w.V2 && (w.File == "io.weight" || w.File == "io.bfq.weight") && !strings.HasPrefix(w.Value, "default ")
}

// nodeOf finds where a write goes.
func (g *Group) nodeOf(w ledger.Write) (*node, error) {
	n := g.unified()
	if !w.V2 {
		n = g.node(w.Controller)
	}
	if n == nil || n.Version == 2 != w.V2 {
		return nil, &Error{Op: "write", Path: g.path + "/" + w.File, Value: w.Value, Pointer: w.Pointer, Err: ErrNoController,
			Hint: "this group has no directory for " + w.Controller}
	}
	return n, g.mayChange("write "+w.File+" of", n)
}

// partners counts the later writes of the queue that bound the first one, and
// finds the last of them.
func partners(queue []ledger.Write) (others, last int) {
	family := familyOf(queue[0].File)
	for i := 1; i < len(queue) && family != ""; i++ {
		if familyOf(queue[i].File) == family {
			others++
			last = i
		}
	}
	return others, last
}

// familyOf names the files whose values bound each other at every moment: on
// version 1 a limit may not exceed that of memory and swap together, and a
// quota's share of its period not the parent's; nor may a burst exceed the quota.
func familyOf(file string) string {
	switch file {
	case "memory.limit_in_bytes", "memory.memsw.limit_in_bytes":
		return "memory"
	case "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.cfs_burst_us", "cpu.max", "cpu.max.burst":
		return "cfs"
	case "cpu.rt_runtime_us", "cpu.rt_period_us":
		return "rt"
	}
	return ""
}

// applyOne makes one write and, where it is to be read back, gives what holds.
func (g *Group) applyOne(n *node, w ledger.Write, past *past) (string, error) {
	if w.File == "memory.max" {
		if err := g.makeRoom(n, w.Value); err != nil {
			return "", err
		}
	}
	got, err := g.exchange(n, w, past)
	if err == unix.ENOENT && w.V2 {
		// The controller may not be enabled yet; if it cannot be, that is the reason.
		if home := n.Has(w.Controller); home {
			if err := g.enable(n, []string{w.Controller}, true); err != nil && !w.Optional {
				return "", err
			}
			got, err = g.exchange(n, w, past)
		}
	}
	if err == unix.EINVAL && familyOf(w.File) == "rt" {
		if err := g.raiseRealtime(n, w.File, w.Value, past); err != nil {
			return "", err
		}
		got, err = g.exchange(n, w, past)
	}
	if w.Optional && (err == unix.ENOENT || err == unix.EOPNOTSUPP) {
		return "", nil
	}
	return got, err
}

// exchange writes a value and reads what became of it through one descriptor.
func (g *Group) exchange(n *node, w ledger.Write, past *past) (string, error) {
	before := inversion(n, w, past)
	dir, err := g.open(n)
	if err != nil {
		return "", err
	}
	flags := unix.O_WRONLY
	if w.ReadBack {
		flags = unix.O_RDWR
	}
	fd, err := openAt(dir, n.file(w.File), flags)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	if err := writeFD(fd, w.Value); err != nil {
		return "", err
	}
	past.note(before)
	if !w.ReadBack {
		return "", nil
	}
	var buf [1024]byte
	for {
		size, err := unix.Pread(fd, buf[:], 0)
		if err != unix.EINTR {
			return string(buf[:max(size, 0)]), err
		}
	}
}

// explainWrite makes the message of a write that failed.
func (g *Group) explainWrite(n *node, w ledger.Write, err error) error {
	var known *Error
	var owner *NotOwnerError
	if errors.As(err, &owner) {
		return err
	}
	if errors.As(err, &known) {
		known.Pointer = w.Pointer
		return known
	}
	e := &Error{Op: "write", Path: n.full(n.file(w.File)), Value: w.Value, Pointer: w.Pointer, Err: err}
	switch {
	case err == unix.ENOENT && w.V2 && !n.Has(w.Controller) && w.Controller != "cgroup":
		return g.withPointer(g.missing(n, w.Controller), w.Pointer)
	case (err == unix.EOPNOTSUPP || err == unix.ENOENT) && isDiskWeight(w):
		e.Hint = "the disk is not divided by weights: choose bfq in its queue/scheduler below /sys/block, or enable iocost for it in io.cost.qos of the root cgroup"
	case err == unix.ENOENT:
		e.Hint = "this kernel has no such file"
	case err == unix.EOPNOTSUPP:
		e.Hint = "this kernel does not support it"
	case strings.HasPrefix(w.File, "memory.") && (err == unix.EINVAL || err == unix.EBUSY):
		e.Hint = g.memoryHint(n, w)
	case familyOf(w.File) == "cfs" && err == unix.EINVAL:
		e.Hint = "the quota may take no greater share of its period than the parent's, and the burst may not exceed the quota"
	case familyOf(w.File) == "rt":
		e.Hint = realtimeHint(n)
	case strings.HasPrefix(w.File, "cpuset.") && !errors.Is(err, unix.EPERM):
		e.Hint = "it has to be part of what the parent has" + parentHolds(n, n.file(w.File))
	case err == unix.ENODEV:
		e.Hint = "there is no such device"
	}
	return e
}

func (g *Group) withPointer(err error, pointer string) error {
	var e *Error
	if errors.As(err, &e) {
		e.Pointer = pointer
	}
	return err
}

// parentHolds says what the parent has in the same file.
func parentHolds(n *node, file string) string {
	parent := node{Hierarchy: n.Hierarchy, path: parentOf(n.path)}
	text, err := readRecord(unix.AT_FDCWD, parent.full(file), make([]byte, 256))
	if err != nil {
		return ""
	}
	return ": " + parent.full(file) + " is " + strings.TrimSpace(string(text))
}
