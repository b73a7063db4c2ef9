package placement_test

import (
	"context"
	"fmt"
	"os/exec"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/cgroup/systemd"
	"github.com/berth-runtime/berth/cgroup/systemd/placement"
	"github.com/berth-runtime/berth/cgroup/systemd/unit"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// A service with Delegate=yes has its payloads below its own cgroup, without a
// word to systemd. Try it with systemd-run -p Delegate=yes --pipe PROGRAM.
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
	web, err := tree.Payload("web")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer web.Purge()
	limit := int64(100)
	if _, err := web.Set(&specs.LinuxResources{Pids: &specs.LinuxPids{Limit: &limit}}); err != nil {
		fmt.Println(err)
		return
	}
	server := exec.Command("sleep", "10")
	if err := server.Start(); err != nil {
		panic(err)
	}
	if err := web.Join(server.Process.Pid); err != nil {
		fmt.Println(err)
	}
	stats, err := web.Stats()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s has %d of %d processes\n", web.Path()[len(tree.Path):], *stats.Pids.Usage, *stats.Pids.Limit)
	web.Kill()
	server.Wait()
}

// A program in a unit that is not delegated has its payloads in one scope.
func ExampleTerritory() {
	host, err := cgroup.Detect()
	if err != nil {
		panic(err)
	}
	manager := systemd.New(systemd.Options{})
	defer manager.Close()
	first := exec.Command("sleep", "10")
	if err := first.Start(); err != nil {
		panic(err)
	}
	defer first.Wait()
	defer first.Process.Kill()
	ctx := context.Background()
	place := unit.Place{Slice: "system.slice", Unit: "fleet.scope"}
	tree, err := placement.Territory(ctx, manager, host, place, first.Process.Pid, "one")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer manager.Stop(ctx, place.Unit)
	second, err := tree.Payload("two")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer second.Close()
	fmt.Println(tree.Path, "has payload-one and", second.Path()[len(tree.Path)+1:])
}
