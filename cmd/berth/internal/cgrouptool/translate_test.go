package cgrouptool

import (
	"strings"
	"testing"

	"github.com/berth-runtime/berth/cgroup/ledger"
)

const someResources = `{
	"memory": {"limit": 67108864, "swap": 134217728},
	"cpu": {"shares": 512},
	"devices": [{"allow": false, "access": "rwm"}, {"allow": true, "type": "c", "major": 1, "minor": 3, "access": "rw"}]
}`

func TestTranslate(t *testing.T) {
	for _, test := range []struct {
		layout  string
		systemd int
		want    []string
	}{
		{"legacy", 0, []string{"v1 memory memory.limit_in_bytes 67108864", "v1 memory memory.memsw.limit_in_bytes 134217728", "v1 cpu cpu.shares 512",
			"v1 devices devices.deny a", "v1 devices devices.allow c 1:3 rw"}},
		{"unified", 0, []string{"v2 memory memory.max 67108864", "v2 memory memory.swap.max 67108864", "v2 cpu cpu.weight 59", "v2 devices (BPF program) "}},
		{"unified", 252, []string{"unit MemoryMax 67108864", "unit MemorySwapMax 67108864", "unit CPUWeight 59",
			"unit DevicePolicy strict", "unit DeviceAllow /dev/char/1:3 rw", "v2 devices (BPF program) "}},
	} {
		for _, document := range []string{someResources, `{"ociVersion": "1.2.0", "root": {"path": "rootfs"}, "linux": {"resources": ` + someResources + `}}`} {
			resources, _, err := ParseResources([]byte(document))
			if err != nil {
				t.Fatal(err)
			}
			layout, ok := ledger.Named(test.layout, test.systemd)
			if !ok {
				t.Fatal(test.layout)
			}
			translation, err := Translate(resources, layout, ledger.Logarithmic)
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			if err := ledger.WriteTranslation(&b, ledger.Text, translation); err != nil {
				t.Fatal(err)
			}
			// Columns are padded: compare by words.
			text := strings.Join(strings.Fields(b.String()), " ")
			for _, want := range test.want {
				if !strings.Contains(text, want) {
					t.Errorf("%s, systemd %d: no %q in\n%s", test.layout, test.systemd, want, b.String())
				}
			}
		}
	}
}

func TestTranslateRefuses(t *testing.T) {
	for document, want := range map[string]string{
		`{"memory": {"swappiness": 10}}`: "/memory/swappiness",
		`{"memory": {"limit": "1"}}`:     "/memory/limit",
		`{"memory": `:                    "line 1",
		`{"devices": [{"allow": true, "type": "x", "access": "r"}]}`: "/devices/0",
	} {
		layout, _ := ledger.Named("unified", 0)
		resources, _, err := ParseResources([]byte(document))
		if err == nil {
			_, err = Translate(resources, layout, ledger.Logarithmic)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", document, err, want)
		}
	}
}
