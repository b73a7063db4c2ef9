package cgroup_test

import (
	"fmt"
	"log"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// A command under a limit, on any layout of cgroups.
func Example() {
	host, err := cgroup.Detect()
	if err != nil {
		log.Fatal(err)
	}
	group, err := host.Create("/berth-test-" + strconv.Itoa(os.Getpid()) + "-example")
	if cgroup.Denied(err) {
		fmt.Println("at most 20 processes") // not root: nothing to show
		return
	}
	if err != nil {
		log.Fatal(err)
	}
	defer group.Destroy()

	limit := int64(20)
	if _, err := group.Set(&specs.LinuxResources{Pids: &specs.LinuxPids{Limit: &limit}}); err != nil {
		log.Fatal(err)
	}
	command := exec.Command("sleep", "1000")
	if err := group.Start(command); err != nil { // nothing that it forks can be outside
		log.Fatal(err)
	}
	stats, err := group.Stats(cgroup.Pids)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("at most", *stats.Pids.Limit, "processes")

	if err := group.Kill(); err != nil {
		log.Fatal(err)
	}
	command.Wait()
	// Output: at most 20 processes
}

// Who keeps a record of what is made can clean up after a crash at any instant: the directories are
// on record before the first is made, and a later program knows by it which are its own.
func ExampleIntent() {
	host, err := cgroup.Detect()
	if err != nil {
		log.Fatal(err)
	}
	var record []string // in a file, that is
	first, err := host.Create("/berth-test-"+strconv.Itoa(os.Getpid())+"-intent", cgroup.Intent(func(directories []string) error {
		record = directories
		return nil
	}))
	if cgroup.Denied(err) {
		fmt.Println("ours: true") // not root: nothing to show
		return
	}
	if err != nil {
		log.Fatal(err)
	}
	first.Close() // as if it were killed here

	again, err := host.Open(first.Path(), cgroup.Made(record))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("ours:", again.Owner().Ownership == cgroup.Ours)
	if err := again.Destroy(); err != nil {
		log.Fatal(err)
	}
	// Output: ours: true
}

// To wait until a job has ended with all that it has started, and not only its first process.
func ExampleGroup_WaitEmpty() {
	host, err := cgroup.Detect()
	if err != nil {
		log.Fatal(err)
	}
	host.Timeout = time.Minute
	group, err := host.Create("/berth-test-" + strconv.Itoa(os.Getpid()) + "-wait")
	if cgroup.Denied(err) {
		fmt.Println("all have ended") // not root: nothing to show
		return
	}
	if err != nil {
		log.Fatal(err)
	}
	defer group.Destroy()
	command := exec.Command("sh", "-c", "sleep 0.1 &")
	if err := group.Start(command); err != nil {
		log.Fatal(err)
	}
	command.Wait() // the shell has ended, and sleep has not
	if err := group.WaitEmpty(); err != nil {
		log.Fatal(err)
	}
	fmt.Println("all have ended")
	// Output: all have ended
}

// What happens to many groups, from one place.
func ExampleWatcher() {
	host, err := cgroup.Detect()
	if err != nil {
		log.Fatal(err)
	}
	group, err := host.Create("/berth-test-" + strconv.Itoa(os.Getpid()) + "-watch")
	if err != nil {
		fmt.Println("removed")
		return
	}
	watcher, err := cgroup.NewWatcher()
	if err != nil {
		log.Fatal(err)
	}
	defer watcher.Close()
	if _, err := watcher.Watch(group, cgroup.OOMKill|cgroup.PidsMax|cgroup.Removed); err != nil {
		log.Fatal(err)
	}
	group.Destroy()
	for event := range watcher.Events() {
		fmt.Println(event.Kind)
		if event.Kind == cgroup.Removed {
			break
		}
	}
	// Output: removed
}

// To be told when the tasks of a group wait for memory for a fifth of a second within two.
func ExampleWatcher_WatchPressure() {
	host, err := cgroup.Detect()
	if err != nil {
		log.Fatal(err)
	}
	group, err := host.Open("/berth-test-nobody")
	if err != nil {
		return // there is no such group here
	}
	defer group.Close()
	watcher, err := cgroup.NewWatcher()
	if err != nil {
		log.Fatal(err)
	}
	defer watcher.Close()
	if err := watcher.WatchPressure(group, cgroup.PressureTrigger{Resource: "memory", Stall: 200 * time.Millisecond, Window: 2 * time.Second}); err != nil {
		log.Fatal(err)
	}
	for event := range watcher.Events() {
		fmt.Println(event.Kind)
	}
	// Output:
}

// Where a container's group is by the runtime spec.
func ExampleHost_ResolvePath() {
	host, err := cgroup.Detect()
	if err != nil {
		log.Fatal(err)
	}
	path, err := host.ResolvePath("/docker/4f2c", "4f2c")
	fmt.Println(path, err)
	_, err = host.ResolvePath("system.slice:berth:4f2c", "4f2c")
	fmt.Println(err)
	// Output:
	// /docker/4f2c <nil>
	// cgroupsPath "system.slice:berth:4f2c" has the systemd driver's form slice:prefix:name, which needs --systemd-cgroup
}
