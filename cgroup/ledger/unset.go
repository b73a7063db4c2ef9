package ledger

import "strings"

// Unset reports whether the file of a limit holds what it does in a cgroup for which none was set.
// Files that begin with the parent's value (Inherited) are never unset by that alone.
func Unset(file, text string) bool {
	text = strings.TrimSpace(text)
	if n, ok := parseLimit(text); text == "" || ok && n == -1 {
		return true
	}
	switch file {
	case "cpu.max":
		return strings.HasPrefix(text, "max ") // a period alone limits nothing
	case "memory.oom_control":
		return strings.HasPrefix(text, "oom_kill_disable 0\n")
	case "rdma.max", "misc.max", "dmem.min", "dmem.low", "dmem.max", "net_prio.ifpriomap":
		return unsetLines(text)
	}
	for _, d := range defaults {
		if d.file == file {
			return d.text == text
		}
	}
	greatest := strings.HasSuffix(file, ".max") || strings.HasSuffix(file, ".high") || strings.HasSuffix(file, "limit_in_bytes")
	return text == "0" && !greatest
}

// defaults are of the files that begin neither with 0 nor with the greatest number.
var defaults = [...]struct{ file, text string }{
	{"cpu.weight", "100"}, {"cpu.shares", "1024"}, {"cpu.cfs_period_us", "100000"}, {"cpu.rt_period_us", "1000000"},
	{"cpu.uclamp.min", "0.00"}, {"cpuset.cpus.partition", "member"},
	{"io.weight", "default 100"}, {"io.bfq.weight", "default 100"}, {"blkio.bfq.weight", "100"}, {"blkio.bfq.weight_device", "default 100"},
	{"blkio.weight", "500"}, {"blkio.leaf_weight", "500"},
	{"memory.zswap.writeback", "1"}, {"memory.use_hierarchy", "1"}, {"cgroup.pressure", "1"},
}

// unsetLines reports whether all limits are 0 or max in lines of KEY VALUE and KEY NAME=VALUE….
func unsetLines(text string) bool {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		for _, value := range fields[min(1, len(fields)):] {
			if _, after, ok := strings.Cut(value, "="); ok {
				value = after
			}
			if value != "max" && value != "0" {
				return false
			}
		}
	}
	return true
}

// Inherited reports whether a new cgroup of version 1 has its parent's value in the file. (The
// kernel leaves a new cpuset empty, in which no process can be: what makes one copies them.)
func Inherited(file string) bool {
	return file == "cpuset.cpus" || file == "cpuset.mems" || file == "memory.swappiness"
}

// LimitFiles are the files of all limits, on either version. In those of huge pages <size> stands
// for the size.
func LimitFiles() []string {
	var files []string
	seen := map[string]bool{}
	for _, e := range Table() {
		if e.Field == "/devices" {
			continue // lists of rules, and no values
		}
		for _, file := range append(append([]string(nil), e.V1.Files...), e.V2.Files...) {
			if !seen[file] {
				seen[file] = true
				files = append(files, file)
			}
		}
	}
	return files
}
