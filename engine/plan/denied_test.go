package plan_test

import (
	"slices"
	"testing"

	"github.com/berth-runtime/berth/cgroup/device"
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/view"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// A config without rules for devices denies all but what every container has and its own nodes;
// explain says why each is allowed. An entry that denies a node stands, and so does one that allows
// all, which is what a privileged container has.
func TestDevicesAreDeniedByDefault(t *testing.T) {
	deny, all := specs.LinuxDeviceCgroup{Access: "rwm"}, specs.LinuxDeviceCgroup{Allow: true, Access: "rwm"}
	loops := int64(7)
	nodes := []specs.LinuxDevice{{Path: "/pipe", Type: "p"}, {Path: "/dev/fuse", Type: "u", Major: 10, Minor: 229}, {Path: "/disk", Type: "b", Major: 8}}
	for _, test := range []struct {
		name      string
		resources *specs.LinuxResources
		nodes     []specs.LinuxDevice
		disk      bool // may be opened
		steps     []string
	}{
		{"no resources", nil, nil, false, []string{"devices: deny all but these", "devices: allow c 1:3 rwm (every container has it)"}},
		{"no rules", &specs.LinuxResources{}, nil, false, []string{"devices: deny all but these"}},
		{"nodes", nil, nodes, true, []string{"devices: allow c 10:229 rw @/linux/devices/1", "devices: allow b 8:0 rw @/linux/devices/2"}},
		{"nodes and a rule", &specs.LinuxResources{Devices: []specs.LinuxDeviceCgroup{{Allow: true, Type: "c", Major: &loops, Access: "r"}}}, nodes, true,
			[]string{"devices: deny all but these @/linux/resources/devices", "devices: allow c 7:* r @/linux/resources/devices/0", "devices: allow b 8:0 rw @/linux/devices/2"}},
		{"all denied", &specs.LinuxResources{Devices: []specs.LinuxDeviceCgroup{deny}}, nodes, false, []string{"devices: allow c 5:2 rwm (every container has it)"}},
		{"all allowed", &specs.LinuxResources{Devices: []specs.LinuxDeviceCgroup{all}}, nil, true, []string{"devices: allow all @/linux/resources/devices"}},
	} {
		s := &specs.Spec{Linux: &specs.Linux{Resources: test.resources, Devices: test.nodes}}
		p, err := plan.New(s, plan.SomeHost(), plan.Options{ID: "demo", Bundle: "/bundle"})
		if err != nil {
			t.Fatal(err)
		}
		if p.Cgroup.Devices == nil {
			t.Errorf("%s: nothing is denied", test.name)
			continue
		}
		if disk := p.Cgroup.Devices.Allows(device.Block, 8, 0, device.Read); disk != test.disk {
			t.Errorf("%s: the disk may be read: %t", test.name, disk)
		}
		for _, d := range [][2]uint32{{1, 3}, {1, 9}, {5, 0}, {5, 2}, {136, 7}} {
			if !p.Cgroup.Devices.Allows(device.Char, d[0], d[1], device.All) {
				t.Errorf("%s: %v is denied", test.name, d)
			}
		}
		var steps []string
		for _, section := range view.Sections(p) {
			for _, step := range section.Steps {
				if step.Pointer != "" {
					step.What += " @" + step.Pointer
				}
				steps = append(steps, step.What)
			}
		}
		for _, want := range test.steps {
			if !slices.Contains(steps, want) {
				t.Errorf("%s: no %q in %q", test.name, want, steps)
			}
		}
	}
}
