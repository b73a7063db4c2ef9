package placement_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/cgroup/systemd"
	"github.com/berth-runtime/berth/cgroup/systemd/placement"
	"github.com/berth-runtime/berth/cgroup/systemd/unit"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// A service with Delegate=yes has its payloads below its own cgroup.
func ExampleIsland() {
	host, err := cgroup.Detect()
	if err != nil {
		panic(err)
	}
	tree, err := placement.Island(host)
	if err != nil {
		fmt.Println("not in a delegated unit:", err)
		return
	}
	payload, err := tree.Payload("web")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer payload.Destroy()
	limit := int64(100)
	if _, err := payload.Set(&specs.LinuxResources{Pids: &specs.LinuxPids{Limit: &limit}}); err != nil {
		fmt.Println(err)
	}
}

// A program in a unit that is not delegated has its payloads in one scope.
func ExampleTerritory() {
	host, err := cgroup.Detect()
	if err != nil {
		panic(err)
	}
	manager := systemd.New(systemd.Options{User: os.Geteuid() != 0})
	defer manager.Close()
	first := exec.Command("sleep", "10")
	if err := first.Start(); err != nil {
		panic(err)
	}
	defer first.Wait()
	defer first.Process.Kill()
	place := unit.Place{Slice: "system.slice", Unit: "fleet.scope"}
	tree, err := placement.Territory(context.Background(), manager, host, place, first.Process.Pid, "one")
	if err != nil {
		fmt.Println(err)
		return
	}
	second, err := tree.Payload("two")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer second.Destroy()
}
