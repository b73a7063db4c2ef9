package integration

import (
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

// What is read from a disk past the cache keeps to --io: so much takes that long at least.
func TestBoxLimitsIO(t *testing.T) {
	throttles := func(h harness.Hierarchy) bool {
		return slices.Contains(h.Controllers, "blkio") || slices.Contains(h.Controllers, "io")
	}
	if !slices.ContainsFunc(harness.Hierarchies(t), throttles) {
		harness.Skip(t, "needs the cgroup controller blkio or io")
	}
	b := harness.New(t)
	// The kernel throttles what a cgroup reads directly; on version 1 what is written later is
	// nobody's.
	const size, rate = 4 << 20, 8 << 20
	b.WriteFile("data", strings.Repeat("x", size), 0o644)
	var st unix.Stat_t
	if err := unix.Stat(b.Path("data"), &st); err != nil {
		t.Fatal(err)
	}
	if unix.Major(st.Dev) == 0 {
		harness.Skip(t, "needs the test's folder on a disk: %s is on a file system without one", b.Dir)
	}
	read := func(options ...string) (time.Duration, harness.Result) {
		began := time.Now()
		r := box(b, append(options, "--", "dd", "if=data", "of=/dev/null", "bs=1M", "iflag=direct")...).Run()
		return time.Since(began), r
	}
	if _, r := read(); r.Code != 0 {
		harness.Skip(t, "needs a file system that reads directly (O_DIRECT): %s", r.Stderr)
	}
	took, r := read("--io", b.Path("data")+":rbps=8M")
	r.OK(t)
	if least := time.Duration(float64(size) / rate * 0.8 * float64(time.Second)); took < least {
		t.Errorf("%d bytes took %s at %d a second, %s at least", size, took, rate, least)
	}
}
