package ledger

import (
	"strings"
	"testing"
)

// A cgroup that isn't in the hierarchy of a controller lacks its files, and the kernel isn't to
// blame.
func TestCgroupOutsideOfAHierarchy(t *testing.T) {
	for _, c := range []struct{ layout, res, pointer string }{
		{"legacy", `{"pids":{"limit":5}}`, "/pids/limit"},
		{"legacy", `{"hugepageLimits":[{"pageSize":"2MB","limit":0}]}`, "/hugepageLimits/0/limit"},
		{"unified", `{"unified":{"pids.max":"5"}}`, "/unified/pids.max"},
	} {
		layout := mustNamed(c.layout, 0)
		layout.Files = func(string, string) bool { return false }
		const kernel, outside = "this kernel has no ", "the cgroup is not in the hierarchy of the "
		if _, _, err := Translate(resources(t, c.res), layout, Options{}); err == nil || !strings.Contains(err.Error(), c.pointer+": "+kernel) {
			t.Errorf("%s in it: %v", c.res, err)
		}
		layout.Absent = func(string) bool { return true }
		if _, _, err := Translate(resources(t, c.res), layout, Options{}); err == nil || !strings.Contains(err.Error(), c.pointer+": "+outside) {
			t.Errorf("%s outside: %v", c.res, err)
		}
	}
}
