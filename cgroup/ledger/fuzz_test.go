package ledger

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// FuzzTranslate gives any resources to any layout: nothing may panic, every
// write must be for one file in the cgroup's own folder, and on a refusal there
// must be no writes.
func FuzzTranslate(f *testing.F) {
	f.Add(`{"memory":{"limit":5,"swap":9},"cpu":{"quota":5000,"burst":3,"cpus":"0-3"}}`, `50000 100000`)
	f.Add(`{"unified":{"io.max":"8:0 rbps=1\n8:1 rbps=2","cpu.max":"max"},"rdma":{"a":{"hcaHandles":1}}}`, `max`)
	f.Add(`{"hugepageLimits":[{"pageSize":"2MB","limit":1}],"blockIO":{"weight":1}}`, ``)
	f.Fuzz(func(t *testing.T, text, present string) {
		var res specs.LinuxResources
		if json.Unmarshal([]byte(text), &res) != nil {
			return
		}
		opts := Options{Present: func(_, _ string) (string, bool) { return present, true }}
		for _, name := range []string{"legacy", "hybrid", "unified"} {
			layout := mustNamed(name, 257)
			writes, _, err := Translate(&res, layout, opts)
			if err != nil && len(writes) > 0 {
				t.Fatalf("writes beside the error %v", err)
			}
			for _, w := range writes {
				if w.File == "" || strings.ContainsAny(w.File, "/\x00\n") || strings.Contains(w.Value, "\n") || w.V2 != layout.onV2(w.Controller) && w.Controller != "cgroup" {
					t.Fatalf("%+v", w)
				}
			}
			if _, _, _, again := Properties(&res, layout, opts); (again == nil) != (err == nil) {
				t.Fatalf("%s: files say %v, properties say %v", name, err, again)
			}
		}
	})
}
