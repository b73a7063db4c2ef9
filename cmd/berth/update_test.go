package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/engine/container"
	"github.com/berth-runtime/berth/engine/spec"
)

func TestParseSize(t *testing.T) {
	for _, test := range []struct {
		text string
		want int64
	}{
		{"0", 0}, {"1", 1}, {"-1", -1}, {"1048576", 1 << 20}, {"10m", 10 << 20}, {"10M", 10 << 20}, {"1G", 1 << 30}, {"1g", 1 << 30},
		{"64k", 64 << 10}, {"2t", 2 << 40}, {"1p", 1 << 50}, {"5b", 5}, {"5kb", 5 << 10}, {"5KiB", 5 << 10}, {"5 MiB", 5 << 20},
		{"1.5G", 3 << 29}, {"0.5k", 512}, {"9223372036854775807", 1<<63 - 1}, {"8388607t", 8388607 << 40},
	} {
		if got, err := parseSize(test.text); err != nil || got != test.want {
			t.Errorf("%q: %d, %v, want %d", test.text, got, err, test.want)
		}
	}
	for _, text := range []string{"", "m", "-2", "-1m", "x", "1x", "1mm", "1ki", "1bk", "1.m", ".5m", "1e3", "+1", "1_0", "0x10", "10 10", "inf", "NaN", "1.5.5",
		"9223372036854775808", "8388608t", "99999999999p", "9000.5p"} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("%q is taken for %d", text, got)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	for _, text := range []string{"10m", "-1", "1.5GiB", "8388608t"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := parseSize(text); err == nil && n < -1 {
			t.Errorf("%q: %d", text, n)
		}
	})
}

func TestRenamed(t *testing.T) {
	const pointer, name = "/memory/limit", "--memory"
	for text, want := range map[string]string{
		"/memory/limit":                              "--memory",
		"/memory/limit: too small":                   "--memory: too small",
		"resources: /memory/limit: too small":        "--memory: too small",
		"update: resources: /memory/limit is small":  "update: --memory is small",
		"small (/memory/limit)":                      "small (--memory)",
		"small (resources: /memory/limit)":           "small (--memory)",
		"/memory/limit and /memory/limit":            "--memory and --memory",
		"/memory/limits: too small":                  "/memory/limits: too small",
		"/memory/limit/x and x/memory/limit":         "/memory/limit/x and x/memory/limit",
		"/linux/resources/memory/limit: too small":   "/linux/resources/memory/limit: too small",
		"other-resources: /memory/limit":             "other-resources: --memory",
		"/cpu/shares: not with \"/memory/limit\"":    "/cpu/shares: not with \"/memory/limit\"",
		"resources: /memory/limit.: is not /memory/": "resources: /memory/limit.: is not /memory/",
	} {
		if got := renamed(text, pointer, name); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// given parses a command line of update.
func given(t *testing.T, args ...string) (*updateOptions, *cli.Command, error) {
	t.Helper()
	o := &updateOptions{flags: map[string]string{}}
	c := &cli.Command{Name: "update", Least: 1, Most: 1, Run: func([]string) error { return nil }}
	o.define(&c.Flags)
	return o, c, c.Execute("berth update", args, nil)
}

func TestUpdateFlags(t *testing.T) {
	o, _, err := given(t, "id", "--memory", "10m", "--memory-swap=-1", "-memory-reservation", "5m", "--kernel-memory", "1m", "--kernel-memory-tcp", "2m",
		"--cpu-share", "512", "--cpu-quota", "-1", "--cpu-period", "50000", "--cpu-burst", "0", "--cpu-rt-period", "1000000", "--cpu-rt-runtime", "950000",
		"--cpu-idle", "1", "--cpuset-cpus", "0-1", "--cpuset-mems", "0", "--pids-limit", "7", "--blkio-weight", "300", "--l3-cache-schema", "L3:0=f", "--mem-bw-schema", "MB:0=50")
	if err != nil {
		t.Fatal(err)
	}
	changes, err := o.resources(strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	r := changes.Resources
	for name, ok := range map[string]bool{
		"memory": *r.Memory.Limit == 10<<20 && *r.Memory.Swap == -1 && *r.Memory.Reservation == 5<<20,
		//lint:ignore SA1019 clients still have it
		"kernel memory": *r.Memory.Kernel == 1<<20 && *r.Memory.KernelTCP == 2<<20,
		"cpu":           *r.CPU.Shares == 512 && *r.CPU.Quota == -1 && *r.CPU.Period == 50000 && *r.CPU.Burst == 0 && *r.CPU.Idle == 1,
		"realtime":      *r.CPU.RealtimePeriod == 1000000 && *r.CPU.RealtimeRuntime == 950000,
		"cpuset":        r.CPU.Cpus == "0-1" && r.CPU.Mems == "0",
		"pids":          *r.Pids.Limit == 7,
		"blkio":         *r.BlockIO.Weight == 300,
		"rdt":           changes.L3CacheSchema == "L3:0=f" && changes.MemBwSchema == "MB:0=50",
	} {
		if !ok {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// Only what is given may be set: the rest of the container stays.
func TestUpdateSetsOnlyWhatIsGiven(t *testing.T) {
	o, _, err := given(t, "--pids-limit", "3", "id")
	if err != nil {
		t.Fatal(err)
	}
	changes, err := o.resources(strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	if r := changes.Resources; r.Memory != nil || r.CPU != nil || r.BlockIO != nil || r.Pids == nil {
		t.Errorf("%+v", r)
	}
}

func TestUpdateRefusals(t *testing.T) {
	for _, args := range [][]string{{"--memory", "lots", "id"}, {"--cpu-share", "-1", "id"}, {"--blkio-weight", "65536", "id"}, {"--pids-limit", "", "id"},
		{"--cpu-quota", "1.5", "id"}, {"--nosuch", "1", "id"}, {"--memory"}, {}, {"one", "two"}} {
		if _, _, err := given(t, args...); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
	o, _, _ := given(t, "id", "-r", "-", "--memory", "1m")
	if _, err := o.resources(strings.NewReader("{}")); err == nil {
		t.Error("a file beside options is taken")
	}
}

func TestUpdateReadsStandardInput(t *testing.T) {
	o, _, _ := given(t, "id", "--resources=-", "--l3-cache-schema", "L3:0=1")
	changes, err := o.resources(strings.NewReader(`{"cpu": {"shares": 3}, "unknown": 1}`))
	if err != nil || *changes.Resources.CPU.Shares != 3 || changes.L3CacheSchema != "L3:0=1" {
		t.Errorf("%+v, %v", changes, err)
	}
}

// A complaint about a value names the option that it came by.
func TestUpdateNamesTheOption(t *testing.T) {
	o, _, _ := given(t, "id", "--cpu-period", "10")
	changes, err := o.resources(strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	_, err = spec.CheckResources(changes.Resources)
	for text, want := range map[string]string{
		"resources: " + err.Error():                                   "--cpu-period: expected 1000 to 1000000",
		"resources: /memory/swap: above (set /memory/limit too)":      "--memory-swap: above (set --memory too)",
		"resources: /cpu/cpus: write /sys/fs/cgroup/cpu/cpus: EINVAL": "--cpuset-cpus: write /sys/fs/cgroup/cpu/cpus: EINVAL",
	} {
		if got := o.name(errors.New(text)).Error(); !strings.HasPrefix(got, want) {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	if err := o.name(container.ErrNotRunning); !errors.Is(err, container.ErrNotRunning) || err.Error() != container.ErrNotRunning.Error() {
		t.Errorf("another error is changed: %v", err)
	}
	if err := o.name(nil); err != nil {
		t.Errorf("success becomes %v", err)
	}
}

// A complaint about a file's value keeps its pointer, after the file.
func TestUpdateNamesTheFile(t *testing.T) {
	o, _, _ := given(t, "id", "-r", "-")
	const document = `{"memory": {"limit": "much"}}`
	if _, err := o.resources(strings.NewReader(document)); err == nil || !strings.HasPrefix(err.Error(), "standard input: /memory/limit: expected") {
		t.Errorf("a wrong type: %v", err)
	}
	changes, err := o.resources(strings.NewReader(`{"cpu": {"period": 10}}`))
	if err != nil || changes.Source != "standard input" {
		t.Fatalf("%+v, %v", changes, err)
	}
	if text := o.name(errors.New("standard input: /cpu/period: 10")).Error(); text != "standard input: /cpu/period: 10" {
		t.Error(text)
	}
}
