package systemd_test

import (
	"context"
	"fmt"
	"os/exec"

	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/cgroup/systemd"
	"github.com/berth-runtime/berth/cgroup/systemd/unit"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// A container's scope is started with all its limits in one call. After it the files
// are written, since systemd does not tell what the kernel has refused.
func ExampleManager_Start() {
	ctx := context.Background()
	m := systemd.New(systemd.Options{})
	defer m.Close()

	version, err := m.Version(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	first := exec.Command("sleep", "10") // the container's first process
	if err := first.Start(); err != nil {
		fmt.Println(err)
		return
	}
	defer first.Wait()
	defer first.Process.Kill()
	place, err := unit.Resolve("machine.slice:berth:demo", "demo", false)
	if err != nil {
		fmt.Println(err)
		return
	}
	limit := int64(64 << 20)
	res := &specs.LinuxResources{Memory: &specs.LinuxMemory{Limit: &limit}}
	layout, _ := ledger.Named("unified", version)
	limits, writes, _, err := ledger.Properties(res, layout, ledger.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	properties := systemd.Base(place, "demo container", first.Process.Pid)
	properties = append(properties, systemd.Resources(ledger.Accounting(layout))...)
	properties = append(properties, systemd.Resources(limits)...)
	if err := m.Start(ctx, place.Unit, properties); err != nil {
		fmt.Println(err)
		return
	}
	defer m.Stop(ctx, place.Unit)
	path, err := m.ControlGroup(ctx, place.Unit)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("its cgroup is", path, "and", len(writes), "files are to be written")
}
