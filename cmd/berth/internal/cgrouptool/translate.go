package cgrouptool

import (
	"fmt"
	"strings"

	"github.com/berth-runtime/berth/cgroup/device"
	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/engine/spec"
	"github.com/berth-runtime/berth/internal/json"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// ParseResources reads a resources object, or takes it out of a config.json, and tells of the keys
// that it knows nothing of.
func ParseResources(data []byte) (resources *specs.LinuxResources, unknown []spec.Complaint, err error) {
	if !isConfig(data) {
		resources, err = spec.ParseResources(data)
		return resources, spec.UnknownResourceKeys(data), err
	}
	config, err := spec.Parse(data)
	if err != nil {
		return nil, nil, err
	}
	unknown = spec.UnknownKeys(data)
	if config.Linux == nil || config.Linux.Resources == nil {
		return &specs.LinuxResources{}, unknown, nil
	}
	return config.Linux.Resources, unknown, nil
}

// isConfig tells a config.json by the version that each must have. What is
// neither is left to the reader of resources to complain about.
func isConfig(data []byte) bool {
	config := false
	d := json.NewDecoder(data)
	for d.Object(); d.Next(); {
		config = config || d.Key() == "ociVersion" || d.Key() == "linux"
		d.Skip()
	}
	return config
}

// Translate says what resources become on a host of this layout, the rules of
// devices included: files, and where the layout has a systemd, its properties.
func Translate(resources *specs.LinuxResources, layout ledger.Layout, shares ledger.SharesFormula) (ledger.Translation, error) {
	var t ledger.Translation
	var err error
	options := ledger.Options{Shares: shares}
	if layout.Systemd > 0 {
		t.Properties, t.Writes, t.Warnings, err = ledger.Properties(resources, layout, options)
	} else {
		t.Writes, t.Warnings, err = ledger.Translate(resources, layout, options)
	}
	if err != nil || len(resources.Devices) == 0 {
		return t, err
	}
	policy, err := device.Fold(resources.Devices)
	if err != nil {
		return t, err
	}
	return t, translateDevices(&t, policy, layout)
}

func translateDevices(t *ledger.Translation, policy device.Policy, layout ledger.Layout) error {
	const pointer = "/devices"
	if layout.Systemd > 0 {
		// Without a host there is no /proc/devices to take names from, so groups go by number.
		mode, allowed := policy.Systemd("", layout.Systemd)
		t.Properties = append(t.Properties, ledger.Property{Name: "DevicePolicy", Value: mode, Pointer: pointer})
		for _, a := range allowed {
			t.Properties = append(t.Properties, ledger.Property{Name: "DeviceAllow", Value: a.Path + " " + a.Access, Pointer: pointer})
		}
	}
	for _, controller := range layout.Legacy {
		if controller != "devices" {
			continue
		}
		lines, err := policy.V1()
		for _, line := range lines {
			t.Writes = append(t.Writes, ledger.Write{Controller: "devices", File: line.File(), Value: line.Text, Pointer: pointer})
		}
		return err
	}
	const instruction = 8 // bytes of a BPF instruction
	var rules []string
	for _, rule := range policy.Rules() {
		verb := "deny "
		if rule.Allow {
			verb = "allow "
		}
		rules = append(rules, verb+rule.String())
	}
	t.Writes = append(t.Writes, ledger.Write{
		Controller: "devices", V2: true, File: "(BPF program)", Value: strings.Join(rules, ", "), Pointer: pointer,
		Note: fmt.Sprintf("%d instructions, attached to the cgroup; the last rule that fits decides", len(policy.Program())/instruction),
	})
	return nil
}
