package machine

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/node/config/resource"
	"golang.org/x/sys/unix"
)

// Capacity is what the machine has.
func (m *Machine) Capacity() (resource.List, error) {
	cpus, err := m.cpus()
	if err != nil {
		return nil, err
	}
	memory, err := m.memory()
	if err != nil {
		return nil, err
	}
	l := resource.List{resource.CPU: 1000 * cpus, resource.Memory: memory}
	if n, ok := m.pids(); ok {
		l[resource.PIDs] = n
	}
	if n, ok := m.storage(); ok {
		l[resource.EphemeralStorage] = n
	}
	for size, count := range m.hugePages() {
		l[resource.HugePages(size)] = size * count
	}
	return l, nil
}

// cpus counts the processors that are online.
func (m *Machine) cpus() (int64, error) {
	const file = "/sys/devices/system/cpu/online"
	text, err := os.ReadFile(m.Root + file)
	if err != nil {
		return 0, fmt.Errorf("count the processors: %w", err)
	}
	list, err := ledger.ParseList(strings.TrimSpace(string(text)))
	if err != nil || list.Len() == 0 {
		return 0, fmt.Errorf("count the processors: %s has %q", file, strings.TrimSpace(string(text)))
	}
	return int64(list.Len()), nil
}

func (m *Machine) memory() (int64, error) {
	text, err := os.ReadFile(m.Root + "/proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("find the size of memory: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err == nil && n > 0 {
				return n << 10, nil
			}
		}
	}
	return 0, fmt.Errorf("find the size of memory: /proc/meminfo has no MemTotal")
}

// pids is how many tasks there can be: by their numbers, and by the kernel's bound
// for their structures (proc(5)).
func (m *Machine) pids() (int64, bool) {
	least, known := int64(0), false
	for _, name := range []string{"kernel.pid_max", "kernel.threads-max"} {
		text, ok := m.Parameter(name)
		n, err := strconv.ParseInt(text, 10, 64)
		if ok && err == nil && (!known || n < least) {
			least, known = n, true
		}
	}
	return least, known
}

// storage is the file system of the kubelet, where pods write; without a kubelet
// that of /var/lib, where runtimes have their containers.
func (m *Machine) storage() (int64, bool) {
	for _, dir := range []string{"/var/lib/kubelet", "/var/lib"} {
		var st unix.Statfs_t
		if unix.Statfs(m.Root+dir, &st) == nil && st.Blocks > 0 {
			return int64(st.Blocks) * int64(st.Bsize), true // Bsize has 32 bits on s390x
		}
	}
	return 0, false
}

// hugePages counts the pages of each size that has any.
func (m *Machine) hugePages() map[int64]int64 {
	const dir = "/sys/kernel/mm/hugepages"
	entries, err := os.ReadDir(m.Root + dir)
	if err != nil {
		return nil
	}
	counts := map[int64]int64{}
	for _, e := range entries {
		text, ok := strings.CutPrefix(e.Name(), "hugepages-")
		kb, err := strconv.ParseInt(strings.TrimSuffix(text, "kB"), 10, 64)
		if !ok || err != nil {
			continue
		}
		number, err := os.ReadFile(m.Root + dir + "/" + e.Name() + "/nr_hugepages")
		if n, err2 := strconv.ParseInt(strings.TrimSpace(string(number)), 10, 64); err == nil && err2 == nil && n > 0 {
			counts[kb<<10] = n
		}
	}
	return counts
}
