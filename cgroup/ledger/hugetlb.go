package ledger

import (
	"strconv"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// hugepages sets both limits of each size: the one on reservations, which fails
// an mmap early, where the kernel has it (5.7), and the one on faults, which
// also counts what was never reserved.
func (t *translation) hugepages(limits []specs.LinuxHugepageLimit) {
	const field = "/hugepageLimits/*/limit"
	for i, l := range limits {
		at := "/hugepageLimits/" + strconv.Itoa(i)
		size, ok := pageSize(l.Pagesize)
		if !ok {
			t.fail(at+"/pageSize", strconv.Quote(l.Pagesize)+" is not a huge page size", "a size is written as 64KB, 2MB or 1GB")
			continue
		}
		at += "/limit"
		p, ok := t.place(field, at)
		if !ok {
			continue
		}
		note := ""
		if size != l.Pagesize {
			note = l.Pagesize + " is " + size
		}
		fault, reserved := strings.ReplaceAll(p.Files[0], "<size>", size), strings.ReplaceAll(p.Files[1], "<size>", size)
		if !t.has(p.Controller, fault) {
			t.failMissing(at, p.Controller, "this kernel has no huge pages of "+size+" (no "+fault+")", "see /sys/kernel/mm/hugepages for the sizes")
			continue
		}
		t.items = append(t.items, t.item(p, fault, at, decimal(l.Limit), note, nil))
		if t.has(p.Controller, reserved) {
			it := t.item(p, reserved, at, decimal(l.Limit), note, nil)
			it.write.Optional = t.layout.Files == nil
			t.items = append(t.items, it)
		}
	}
}

// pageSize reads the spec's <size><unit-prefix>B and gives the kernel's own
// spelling (mem_fmt in mm/hugetlb_cgroup.c), so that 2048KB finds 2MB.
func pageSize(s string) (string, bool) {
	units := [...]string{"B", "KB", "MB", "GB", "TB", "PB"}
	digits := strings.TrimRight(s, "KMGTPB")
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || n == 0 {
		return "", false
	}
	shift := -1
	for i, u := range units {
		if s[len(digits):] == u {
			shift = i * 10
		}
	}
	if shift < 0 {
		return "", false
	}
	bytes := n << shift
	if bytes>>shift != n || bytes&(bytes-1) != 0 || bytes < 1<<10 {
		return "", false // a huge page is a power of two
	}
	switch {
	case bytes >= 1<<30:
		return decimal(bytes>>30) + "GB", true
	case bytes >= 1<<20:
		return decimal(bytes>>20) + "MB", true
	}
	return decimal(bytes>>10) + "KB", true
}
