package allocatable

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/node/config"
	"github.com/berth-runtime/berth/node/config/resource"
)

const (
	mi = 1 << 20
	gi = 1 << 30
)

var machine = resource.List{resource.CPU: 4000, resource.Memory: 8 * gi, resource.PIDs: 32768, resource.EphemeralStorage: 100 * gi}

func compute(t *testing.T, capacity resource.List, text string) (Table, error) {
	t.Helper()
	c, err := config.Parse("node.yaml", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	return Compute(capacity, c)
}

func TestCompute(t *testing.T) {
	for _, c := range []struct {
		name     string
		capacity resource.List
		text     string
		want     string // name system kube eviction huge limit allocatable
	}{
		{"nothing reserved", machine, "",
			"cpu 0 0 0 0 4 4; memory 0 0 0 0 8Gi 8Gi; pids 0 0 0 0 32768 32768; ephemeral-storage 0 0 0 0 100Gi 100Gi"},
		{"the seed's sum", machine, `
system-reserved: {cpu: 500m, memory: 1Gi, pids: 1000, ephemeral-storage: 10Gi}
kube-reserved: {cpu: 250m, memory: 512Mi, pids: 500, ephemeral-storage: 1Gi}
eviction-hard: {memory.available: 100Mi, nodefs.available: 10%, pid.available: 100}`,
			"cpu 500m 250m 0 0 3250m 3250m; memory 1Gi 512Mi 100Mi 0 6656Mi 6556Mi; pids 1000 500 100 0 31268 31168; ephemeral-storage 10Gi 1Gi 10Gi 0 89Gi 79Gi"},
		{"fractions are rounded up", resource.List{resource.CPU: 1000, resource.Memory: 1001}, `
system-reserved: {cpu: 0.1m, memory: 10%}
kube-reserved: {cpu: 33.3333%, memory: 0.5}`,
			"cpu 1m 334m 0 0 665m 665m; memory 101 1 0 0 899 899"},
		{"huge pages are off memory", resource.List{resource.Memory: 4 * gi, "hugepages-2Mi": gi, "hugepages-1Gi": gi}, `
system-reserved: {memory: 512Mi, hugepages-2Mi: 4Mi}
eviction-hard: {memory.available: 512Mi}`,
			"memory 512Mi 0 512Mi 2Gi 1536Mi 1Gi; hugepages-2Mi 4Mi 0 0 0 1020Mi 1020Mi; hugepages-1Gi 0 0 0 0 1Gi 1Gi"},
		{"a share of huge pages is whole pages", resource.List{resource.Memory: gi, "hugepages-2Mi": 10 * mi}, "kube-reserved: {hugepages-2Mi: 25%}",
			"memory 0 0 0 10Mi 1014Mi 1014Mi; hugepages-2Mi 0 4Mi 0 0 6Mi 6Mi"},
		{"all of it", resource.List{resource.CPU: 2000}, "system-reserved: {cpu: 1500m}\nkube-reserved: {cpu: 500m}",
			"cpu 1500m 500m 0 0 0 0"},
		{"100%", resource.List{resource.CPU: 3000}, "system-reserved: {cpu: 100%}", "cpu 3 0 0 0 0 0"},
		{"nothing of what is not there", resource.List{resource.CPU: 1000}, "system-reserved: {memory: 0}", "cpu 0 0 0 0 1 1"},
	} {
		table, err := compute(t, c.capacity, c.text)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var rows []string
		for _, r := range table {
			f := r.Name.Format
			rows = append(rows, fmt.Sprint(r.Name, " ", f(r.System), " ", f(r.Kube), " ", f(r.Eviction), " ", f(r.HugePages), " ", f(r.Limit), " ", f(r.Allocatable)))
		}
		if got := strings.Join(rows, "; "); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestRefused(t *testing.T) {
	huge := resource.List{resource.Memory: gi, "hugepages-2Mi": 512 * mi}
	for _, c := range []struct {
		capacity resource.List
		text     string
		want     string
	}{
		{machine, "system-reserved: {cpu: 5}", "node.yaml:1: system-reserved.cpu: more cpu is reserved (system 5, kube 0, eviction 0) than the 4 that this machine has"},
		{machine, "system-reserved: {memory: 2Gi}\nkube-reserved: {memory: 7Gi}", "node.yaml:2: kube-reserved.memory: more memory"},
		{machine, "system-reserved: {memory: 8Gi}\neviction-hard: {memory.available: 1}", "node.yaml:1: system-reserved.memory: more memory"},
		{machine, "system-reserved: {memory: 7Ei}\nkube-reserved: {memory: 7Ei}", "more memory"},
		{machine, "system-reserved: {memory: 8Ei}", "too large"},
		{machine, "kube-reserved: {hugepages-2Mi: 2Mi}", "node.yaml:1: kube-reserved.hugepages-2Mi: this machine has no hugepages-2Mi (and no other"},
		{huge, "kube-reserved: {hugepages-1Gi: 1Gi}", "this machine has no hugepages-1Gi (it has hugepages-2Mi)"},
		{huge, "kube-reserved: {hugepages-2Mi: 3Mi}", "not a multiple"},
		{huge, "system-reserved: {memory: 600Mi}", "huge pages 512Mi"},
		{huge, "system-reserved: {hugepages-2Mi: 1Gi}", "more hugepages-2Mi"},
	} {
		if _, err := compute(t, c.capacity, c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want something of %q", c.text, err, c.want)
		}
	}
}

// What is reserved and what is left is always the whole.
func FuzzCompute(f *testing.F) {
	f.Add("100m", "10%", int64(4000), int64(8*gi))
	f.Add("5", "2Gi", int64(4000), int64(8*gi))
	f.Add("0", "7Ei", int64(1), int64(1)<<62)
	f.Fuzz(func(t *testing.T, cpu, memory string, cpus, bytes int64) {
		c, err := config.Parse("f", "", []config.Override{{Key: "system-reserved", Value: "cpu=" + cpu}, {Key: "kube-reserved", Value: "memory=" + memory}})
		if err != nil || cpus < 0 || bytes < 0 {
			return
		}
		table, err := Compute(resource.List{resource.CPU: cpus, resource.Memory: bytes}, c)
		if err != nil {
			return
		}
		for _, r := range table {
			if r.System+r.Kube+r.Eviction+r.HugePages+r.Allocatable != r.Capacity || r.Allocatable < 0 {
				t.Errorf("%+v", r)
			}
		}
	})
}
