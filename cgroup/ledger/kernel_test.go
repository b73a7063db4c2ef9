package ledger

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/cgroup/internal/testgroup"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// change sets random resources again and again: whatever Translate lets through
// the kernel must take, in the order given, and give back.
func change(t *testing.T, dir string, next func(*rand.Rand) *specs.LinuxResources) {
	t.Helper()
	layout := mustNamed("legacy", 0)
	layout.Files = func(_, file string) bool {
		_, err := os.Stat(filepath.Join(dir, file))
		return err == nil
	}
	opts := Options{Present: func(_, file string) (string, bool) {
		b, err := os.ReadFile(filepath.Join(dir, file))
		return strings.TrimSpace(string(b)), err == nil
	}}
	r := rand.New(rand.NewPCG(9, 10))
	refused := 0
	const times = 1000
	for range times {
		res := next(r)
		writes, _, err := Translate(res, layout, opts)
		if err != nil {
			refused++
			continue
		}
		for _, w := range writes {
			before, _ := opts.Present("", w.File)
			if err := os.WriteFile(filepath.Join(dir, w.File), []byte(w.Value), 0); err != nil {
				t.Fatalf("%+v: %s, which was %s: %v", writes, w.File, before, err)
			}
		}
		for _, w := range writes {
			got, _ := opts.Present("", w.File)
			if same, why := w.Took(got); w.ReadBack && !same {
				t.Fatal(why)
			}
		}
	}
	if refused > times/2 {
		t.Errorf("%d of %d were refused before the kernel saw them", refused, times)
	}
}

func TestBandwidthOnKernel(t *testing.T) {
	parent := testgroup.Make(t, testgroup.Mount(t, "cgroup", "cpu"))
	dir := testgroup.Make(t, parent)
	// A limit of the parent is what makes the order matter.
	if err := os.WriteFile(filepath.Join(parent, "cpu.cfs_quota_us"), []byte("100000"), 0); err != nil {
		t.Skipf("this kernel has no CPU bandwidth: %v", err)
	}
	_, err := os.Stat(filepath.Join(dir, "cpu.cfs_burst_us"))
	change(t, dir, func(r *rand.Rand) *specs.LinuxResources {
		c := &specs.LinuxCPU{}
		period := uint64(1000 * (1 + r.IntN(1000)))
		quota := int64(1000 + r.Uint64N(period-999))
		c.Period, c.Quota = &period, &quota
		if err == nil && r.IntN(2) == 0 {
			burst := r.Uint64N(uint64(quota) + 1)
			c.Burst = &burst
		}
		if r.IntN(10) == 0 {
			none := int64(-1)
			c.Quota = &none
		}
		return &specs.LinuxResources{CPU: c}
	})
}

func TestMemoryOnKernel(t *testing.T) {
	dir := testgroup.Make(t, testgroup.Mount(t, "cgroup", "memory"))
	_, err := os.Stat(filepath.Join(dir, "memory.memsw.limit_in_bytes"))
	change(t, dir, func(r *rand.Rand) *specs.LinuxResources {
		m := &specs.LinuxMemory{}
		// Whole pages of any size, so that what comes back is the same.
		limit := int64(1+r.IntN(1000)) << 16
		m.Limit = &limit
		if err == nil && r.IntN(4) > 0 {
			swap := limit + int64(r.IntN(1000))<<16
			m.Swap = &swap
		}
		if r.IntN(8) == 0 {
			none := int64(-1)
			m.Limit = &none
			m.Swap = nil
		}
		return &specs.LinuxResources{Memory: m}
	})
}
