package integration

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

// weighedDisk is a disk that a test may have divided by weights, by BFQ or by iocost.
type weighedDisk struct {
	t            *testing.T
	number       string
	major, minor int64
	scheduler    string // its file
}

func needWeighedDisk(t *testing.T) *weighedDisk {
	t.Helper()
	needV2(t)
	dev := harness.NeedFile(t, "/sys/block/nullb*/dev", "a disk that nobody uses")
	number := strings.TrimSpace(readFile(t, dev))
	d := &weighedDisk{t: t, number: number, scheduler: filepath.Join(filepath.Dir(dev), "queue/scheduler")}
	major, minor, _ := strings.Cut(number, ":")
	var err error
	d.major, err = strconv.ParseInt(major, 10, 64)
	must(t, err)
	d.minor, err = strconv.ParseInt(minor, 10, 64)
	must(t, err)
	return d
}

const qos = "/sys/fs/cgroup/io.cost.qos"

// by has the disk divided by one of the two until the end of the test, and by nobody else.
func (d *weighedDisk) by(t *testing.T, who string) {
	t.Helper()
	set := func(file, value string) {
		t.Helper()
		switch err := os.WriteFile(file, []byte(value), 0); {
		case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.EINVAL):
			harness.Skip(t, "needs a kernel with BFQ and iocost: %v", err)
		case err != nil:
			t.Fatal(err)
		}
	}
	set(d.scheduler, "none")
	switch who {
	case "BFQ":
		set(d.scheduler, "bfq")
		t.Cleanup(func() { set(d.scheduler, "none") })
	case "iocost":
		set(qos, d.number+" enable=1")
		t.Cleanup(func() { set(qos, d.number+" enable=0") })
	}
}

func (d *weighedDisk) weight(n uint16) *specs.LinuxResources {
	return &specs.LinuxResources{BlockIO: &specs.LinuxBlockIO{WeightDevice: []specs.LinuxWeightDevice{{
		LinuxBlockIODevice: specs.LinuxBlockIODevice{Major: d.major, Minor: d.minor}, Weight: &n,
	}}}}
}

// update writes a file for berth update.
func (d *weighedDisk) update(b *harness.Box, weight int) string {
	text := fmt.Sprintf(`{"blockIO":{"weightDevice":[{"major":%d,"minor":%d,"weight":%d}]}}`, d.major, d.minor, weight)
	return b.WriteFile("update.json", text, 0o644)
}

// A disk is divided by BFQ, by iocost, or not at all; its weight goes to whichever it has, and both
// are never needed.
func TestCgroupWeightOfDisk(t *testing.T) {
	b := harness.New(t)
	d := needWeighedDisk(t)
	t.Run("none", func(t *testing.T) {
		d.by(t, "nobody")
		if had, err := os.ReadFile(qos); err == nil && strings.Contains("\n"+string(had), "\n"+d.number+" ") {
			harness.Skip(t, "needs a disk that has never had iocost, which takes weights from then on")
		}
		c := b.Container("/inside", "hang")
		c.Spec.Linux.Resources = d.weight(500)
		if r := c.TryRunDetached(); r.Code == 0 || !strings.Contains(r.Stderr, "/blockIO/weightDevice/0/weight") || !strings.Contains(r.Stderr, "choose bfq") {
			t.Errorf("a weight of a disk without weights: %v", r)
		}
	})
	for _, test := range []struct{ who, file, first, second string }{
		{"BFQ", "io.bfq.weight", "500", "300"},
		{"iocost", "io.weight", "4950", "2930"},
	} {
		t.Run(test.who, func(t *testing.T) {
			d.by(t, test.who)
			c := b.Container("/inside", "hang")
			c.Spec.Linux.Resources = d.weight(500)
			c.RunDetached()
			has := func(weight string) {
				t.Helper()
				if got := c.CgroupFile("io", "", test.file); !slices.Contains(strings.Split(got, "\n"), d.number+" "+weight) {
					t.Errorf("%s has %q, want %s", test.file, got, weight)
				}
			}
			has(test.first)
			b.Berth("update", "--resources", d.update(b, 300), c.ID).OK(t)
			has(test.second)
			c.Kill("KILL").WaitExit()
			c.Delete()
		})
	}
}

// systemd is told the weight of a disk. It has its own way to make a weight of BFQ's out of one of
// iocost's, but the file has the config's, after an update as well. After a reload an old systemd
// has written its own for BFQ (docs/systemd.md).
func TestUnitWeightOfDisk(t *testing.T) {
	b := systemdAsRoot(t)
	d := needWeighedDisk(t)
	for _, test := range []struct{ who, file, first, second string }{
		{"BFQ", "io.bfq.weight", "500", "300"},
		{"iocost", "io.weight", "4950", "2930"},
	} {
		t.Run(test.who, func(t *testing.T) {
			d.by(t, test.who)
			c, unit := unitContainer(b, "/inside", "hang")
			c.Spec.Linux.Resources = d.weight(500)
			c.RunDetached()
			has := func(systemds, weight string) {
				t.Helper()
				if got, want := property(t, unit, "IODeviceWeight"), "/dev/block/"+d.number+" "+systemds; got != want {
					t.Errorf("IODeviceWeight is %q, want %q", got, want)
				}
				if got := unitFile(t, unit, "io", "", test.file); !slices.Contains(strings.Split(got, "\n"), d.number+" "+weight) {
					t.Errorf("%s has %q, want %s", test.file, got, weight)
				}
			}
			has("4950", test.first)
			b.Berth("update", "--resources", d.update(b, 300), c.ID).OK(t)
			has("2930", test.second)
			if test.who == "iocost" {
				systemctl(t, "daemon-reload")
				has("2930", test.second)
			}
			c.Kill("KILL").WaitExit()
			c.Delete()
			gone(t, unit)
		})
	}
}
