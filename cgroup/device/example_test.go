package device_test

import (
	"fmt"

	"github.com/berth-runtime/berth/cgroup/device"
	"github.com/opencontainers/runtime-spec/specs-go"
)

func Example() {
	fuse := func(n int64) *int64 { return &n }
	policy, err := device.Fold([]specs.LinuxDeviceCgroup{
		{Allow: false, Access: "rwm"},
		{Allow: true, Type: "c", Major: fuse(10), Minor: fuse(229), Access: "rw"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("open for writing:", policy.Allows(device.Char, 10, 229, device.Write))
	fmt.Println("make the node:", policy.Allows(device.Char, 10, 229, device.Mknod))
	lines, _ := policy.V1()
	for _, l := range lines {
		fmt.Println(l.File(), "<-", l.Text)
	}
	fmt.Println(len(policy.Program())/8, "instructions")
	// Output:
	// open for writing: true
	// make the node: false
	// devices.deny <- a *:* rwm
	// devices.allow <- c 10:229 rw
	// 24 instructions
}
