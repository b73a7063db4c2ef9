package integration

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

// veth makes a pair of network devices, which goes with the test, or skips it.
func veth(t *testing.T, name, peer string) {
	t.Helper()
	harness.NeedTool(t, "ip", "iproute2")
	if out, err := exec.Command("ip", "link", "add", name, "type", "veth", "peer", "name", peer).CombinedOutput(); err != nil {
		harness.Skip(t, "needs veth devices: %v: %s", err, strings.TrimSpace(string(out)))
	}
	t.Cleanup(func() { exec.Command("ip", "link", "del", peer).Run() })
}

func TestNetDevices(t *testing.T) {
	harness.NeedContainers(t)
	veth(t, "bertht0", "bertht1")
	if out, err := exec.Command("ip", "addr", "add", "192.0.2.7/29", "dev", "bertht0").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b := harness.New(t)
	c := b.Container()
	c.Spec.Linux.NetDevices = map[string]specs.LinuxNetDevice{"bertht0": {Name: "inner0"}}
	v := c.Look()
	for _, l := range v.Links {
		if l.Name == "inner0" {
			if !l.Up || !slices.ContainsFunc(l.Addresses, func(a string) bool { return strings.HasPrefix(a, "192.0.2.7") }) {
				t.Errorf("the device is %+v, want it up and with its address", l)
			}
			return
		}
	}
	t.Errorf("the container has no device inner0: %+v", v.Links)
}

func TestNetDevicesRefused(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true")
	c.Spec.Linux.NetDevices = map[string]specs.LinuxNetDevice{"berthnone": {}}
	c.Run().Fails(t, "/linux/netDevices/berthnone")
}
