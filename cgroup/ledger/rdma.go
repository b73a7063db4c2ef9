package ledger

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/internal/json"
)

// rdma writes one line for each device: rdma.max resets nothing that a line
// does not name, but takes one device at a time.
func (t *translation) rdma(devices map[string]specs.LinuxRdma) {
	for _, name := range slices.Sorted(maps.Keys(devices)) {
		d := devices[name]
		at := string(json.AppendKey([]byte("/rdma"), name))
		if name == "" || strings.ContainsAny(name, " \t\n") {
			t.fail(at, strconv.Quote(name)+" is not the name of a device", "")
			continue
		}
		line, field := name, ""
		if d.HcaHandles != nil {
			line += " hca_handle=" + decimal(*d.HcaHandles)
			field = "/rdma/*/hcaHandles"
		}
		if d.HcaObjects != nil {
			line += " hca_object=" + decimal(*d.HcaObjects)
			field = "/rdma/*/hcaObjects"
		}
		if field == "" {
			t.fail(at, "neither hcaHandles nor hcaObjects is set", "the spec wants at least one")
			continue
		}
		t.set(field, at, line, "", nil)
	}
}
