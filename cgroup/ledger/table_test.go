package ledger

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// seedRows are the two tables of the systemd driver's contract: the resource,
// its property, and the least version where the contract names one.
var seedRows = map[bool][][3]any{
	false: {
		{"/memory/limit", "MemoryLimit", 0},
		{"/cpu/shares", "CPUShares", 0},
		{"/blockIO/weight", "BlockIOWeight", 0},
		{"/pids/limit", "TasksMax", 0},
		{"/cpu/cpus", "AllowedCPUs", 244},
		{"/cpu/mems", "AllowedMemoryNodes", 244},
	},
	true: {
		{"/memory/limit", "MemoryMax", 0},
		{"/memory/reservation", "MemoryLow", 0},
		{"/memory/swap", "MemorySwapMax", 0},
		{"/cpu/shares", "CPUWeight", 0},
		{"/pids/limit", "TasksMax", 0},
		{"/cpu/cpus", "AllowedCPUs", 244},
		{"/cpu/mems", "AllowedMemoryNodes", 244},
		{"/unified/cpu.max", "CPUQuotaPerSecUSec", 0},
		{"/unified/cpu.max", "CPUQuotaPeriodUSec", 242},
		{"/unified/cpu.weight", "CPUWeight", 0},
		{"/unified/cpu.idle", "CPUWeight", 252},
		{"/unified/cpuset.cpus", "AllowedCPUs", 244},
		{"/unified/cpuset.mems", "AllowedMemoryNodes", 244},
		{"/unified/memory.high", "MemoryHigh", 0},
		{"/unified/memory.low", "MemoryLow", 0},
		{"/unified/memory.min", "MemoryMin", 0},
		{"/unified/memory.max", "MemoryMax", 0},
		{"/unified/memory.swap.max", "MemorySwapMax", 0},
		{"/unified/pids.max", "TasksMax", 0},
	},
}

func TestTableHasTheContract(t *testing.T) {
	for v2, rows := range seedRows {
		for _, row := range rows {
			found := false
			for _, e := range Table() {
				p := e.V1
				if v2 {
					p = e.V2
				}
				for _, u := range p.Properties {
					if e.Field == row[0] && u.Name == row[1] && (row[2] == 0 || u.Since == row[2]) {
						found = true
					}
				}
			}
			if !found {
				t.Errorf("v2 %v: no row %v", v2, row)
			}
		}
	}
}

func TestTableIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range Table() {
		if seen[e.Field] || e.Meaning == "" {
			t.Errorf("%s is there twice or says nothing", e.Field)
		}
		seen[e.Field] = true
		for _, p := range []Place{e.V1, e.V2} {
			if len(p.Files) == 0 && p.Missing == "" {
				t.Errorf("%s: neither a file nor a reason", e.Field)
			}
			if len(p.Files) > 0 && (p.Controller == "") != strings.HasPrefix(p.Files[0], "cgroup.") {
				t.Errorf("%s: %s is of the controller %q", e.Field, p.Files[0], p.Controller)
			}
			for _, u := range p.Properties {
				if u.Since < 200 || u.Since > 300 {
					t.Errorf("%s: %s since %d", e.Field, u.Name, u.Since)
				}
			}
		}
	}
}

func TestWriteTable(t *testing.T) {
	var text, markdown, js bytes.Buffer
	for f, b := range map[Format]*bytes.Buffer{Text: &text, Markdown: &markdown, JSON: &js} {
		if err := WriteTable(b, f); err != nil {
			t.Fatal(err)
		}
	}
	var rows []struct {
		Field  string
		V1, V2 struct {
			Files      []string
			Properties []struct{ Since int }
		}
	}
	if err := json.Unmarshal(js.Bytes(), &rows); err != nil || len(rows) != len(Table()) || rows[0].V2.Files[0] != "memory.max" || rows[0].V2.Properties[0].Since != 231 {
		t.Errorf("%v %+v", err, rows)
	}
	for _, e := range Table() {
		for _, p := range []Place{e.V1, e.V2} {
			for _, f := range p.Files {
				if !strings.Contains(text.String(), f) || !strings.Contains(markdown.String(), "`"+f+"`") {
					t.Errorf("%s is not printed", f)
				}
			}
		}
	}
	for line := range strings.SplitSeq(strings.TrimSpace(markdown.String()), "\n") {
		if strings.HasPrefix(line, "|") && strings.Count(line, " |") != 7 {
			t.Errorf("no seven columns: %s", line)
		}
	}
	if err := WriteTable(&text, "yaml"); err == nil {
		t.Error("yaml is taken")
	}
}

func TestWriteTranslation(t *testing.T) {
	res := resources(t, `{"memory":{"limit":100,"kernel":5},"cpu":{"shares":1024,"cpus":"0-1"},"blockIO":{"weightDevice":[{"major":8,"minor":0,"weight":10}]},"unified":{"memory.\"odd\\\u0001":"x|y"}}`)
	properties, writes, warnings, err := Properties(res, mustNamed("unified", 252), Options{})
	if err != nil {
		t.Fatal(err)
	}
	tr := Translation{properties, writes, warnings}
	var text, markdown, js bytes.Buffer
	for f, b := range map[Format]*bytes.Buffer{Text: &text, Markdown: &markdown, JSON: &js} {
		if err := WriteTranslation(b, f, tr); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"by the logarithmic formula", "MemoryMax", "warning: /memory/kernel: "} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	if !strings.Contains(markdown.String(), "| `/memory/limit` | unit | `MemoryMax` | `100` |  |") {
		t.Errorf("%s", markdown.String())
	}
	if !strings.Contains(markdown.String(), "| `x\\|y` |") {
		t.Errorf("a bar in a value makes a column:\n%s", markdown.String())
	}
	var got struct {
		Properties []struct {
			Name  string
			Value any
		}
		Writes   []struct{ File, Value, Version string }
		Warnings []struct{ Pointer, Message string }
	}
	if err := json.Unmarshal(js.Bytes(), &got); err != nil {
		t.Fatalf("%v\n%s", err, js.String())
	}
	if len(got.Properties) != 4 || got.Properties[0].Value != 100.0 || len(got.Warnings) != 1 ||
		len(got.Writes) != 6 || got.Writes[5].File != "memory.\"odd\\\x01" || got.Writes[5].Version != "v2" {
		t.Errorf("%+v", got)
	}
	if err := WriteTranslation(&text, "yaml", tr); err == nil {
		t.Error("yaml is taken")
	}
}

func TestNamedUnknown(t *testing.T) {
	if _, ok := Named("v3", 0); ok {
		t.Error("v3 is known")
	}
}
