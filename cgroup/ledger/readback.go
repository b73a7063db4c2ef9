package ledger

import (
	"strconv"
	"strings"
)

// readsBack marks the files whose value the kernel rounds, clamps or takes
// silently, so that only reading tells what holds.
func readsBack(file string) bool {
	switch file {
	case "memory.limit_in_bytes", "memory.soft_limit_in_bytes", "memory.memsw.limit_in_bytes",
		"memory.max", "memory.high", "memory.low", "memory.min", "memory.swap.max", "memory.zswap.max",
		"cpu.shares", "cpu.weight", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.max",
		"cpuset.cpus", "cpuset.mems", "pids.max":
		return true
	}
	return strings.HasPrefix(file, "hugetlb.")
}

// Took compares what was written with what the file gives back, and says what
// holds instead where they differ. Different words for no limit are no
// difference, nor is the quota that a period alone leaves.
func (w Write) Took(got string) (bool, string) {
	got = strings.TrimSpace(got)
	want := strings.TrimSpace(w.Value)
	if got == want {
		return true, ""
	}
	same := false
	switch {
	case w.File == "memory.oom_control":
		same = strings.HasPrefix(got, "oom_kill_disable "+want+"\n")
	case w.File == "io.weight" || w.File == "io.bfq.weight":
		first, _, _ := strings.Cut(got, "\n") // devices come below
		same = first == "default "+want
	case strings.HasPrefix(w.File, "cpuset."):
		a, err1 := ParseList(want)
		b, err2 := ParseList(got)
		same = err1 == nil && err2 == nil && a.String() == b.String()
	case w.File == "cpu.max":
		// One word written leaves the second as it was.
		same = !strings.Contains(want, " ") && strings.HasPrefix(got, want+" ")
	default:
		a, ok1 := writtenLimit(want)
		b, ok2 := parseLimit(got)
		same = ok1 && ok2 && a == b
	}
	if same {
		return true, ""
	}
	return false, w.File + " is " + strconv.Quote(got) + " where " + strconv.Quote(want) + " was written"
}

func writtenLimit(s string) (int64, bool) {
	n, ok := unifiedLimit(s)
	switch {
	case s == "-1" || ok && n >= noLimit:
		return -1, true
	case !ok:
		return 0, false
	}
	return int64(n), true
}
