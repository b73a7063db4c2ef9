package ledger_test

import (
	"fmt"
	"os"

	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/opencontainers/runtime-spec/specs-go"
)

func Example() {
	shares, limit, swap := uint64(1024), int64(256<<20), int64(512<<20)
	res := &specs.LinuxResources{
		CPU:    &specs.LinuxCPU{Shares: &shares},
		Memory: &specs.LinuxMemory{Limit: &limit, Swap: &swap},
	}
	layout, _ := ledger.Named("unified", 0)
	writes, _, err := ledger.Translate(res, layout, ledger.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, w := range writes {
		fmt.Println(w.File, w.Value)
	}
	// Output:
	// memory.max 268435456
	// memory.swap.max 268435456
	// cpu.weight 100
}

func ExampleProperties() {
	quota, period := int64(33333), uint64(100000)
	res := &specs.LinuxResources{CPU: &specs.LinuxCPU{Quota: &quota, Period: &period, Cpus: "0-3,7"}}
	layout, _ := ledger.Named("unified", 257)
	properties, writes, warnings, err := ledger.Properties(res, layout, ledger.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ledger.WriteTranslation(os.Stdout, ledger.Text, ledger.Translation{Properties: properties, Writes: writes, Warnings: warnings})
	// Output:
	// FIELD        WHERE      NAME                VALUE         NOTE
	// /cpu/quota   unit       CPUQuotaPerSecUSec  340000        33333 in 100000 is 340000 in a second, rounded up to 10 ms
	// /cpu/period  unit       CPUQuotaPeriodUSec  100000
	// /cpu/cpus    unit       AllowedCPUs         0x8f (0-3,7)
	// /cpu/quota   v2 cpu     cpu.max             34000 100000
	// /cpu/cpus    v2 cpuset  cpuset.cpus         0-3,7
	// warning: /cpu/quota: systemd keeps whole percents: 33333 becomes 34000 in a period of 100000
}
