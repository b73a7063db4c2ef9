package spec_test

import (
	stdjson "encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/engine/spec"
)

func TestExamplePasses(t *testing.T) {
	for _, rootless := range []bool{false, true} {
		s := spec.Example(rootless)
		warnings, err := spec.Check(s)
		if err != nil || len(warnings) != 0 {
			t.Errorf("rootless %v: %v, %v", rootless, err, warnings)
		}
		back, err := spec.Parse(spec.Format(s, "    "))
		if err != nil || !reflect.DeepEqual(back, s) {
			t.Errorf("rootless %v: came back as %+v, %v", rootless, back, err)
		}
	}
}

// full returns a spec in which every field of every structure is set, lists and
// maps with two entries: what is forgotten by the generator shows.
func full(t testing.TB) *specs.Spec {
	t.Helper()
	n := 0
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		n++
		switch v.Kind() {
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem())
		case reflect.Struct:
			for i := range v.NumField() {
				switch v.Type().Field(i).Name {
				case "Solaris", "Windows", "VM", "ZOS", "FreeBSD":
					if v.Type() == reflect.TypeFor[specs.Spec]() {
						continue
					}
				}
				fill(v.Field(i))
			}
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			fill(v.Index(0))
			fill(v.Index(1))
		case reflect.Map:
			v.Set(reflect.MakeMap(v.Type()))
			for _, key := range []string{"a/b~c", "é \"\n"} {
				item := reflect.New(v.Type().Elem()).Elem()
				fill(item)
				v.SetMapIndex(reflect.ValueOf(key), item)
			}
		case reflect.String:
			v.SetString("text \"<&>\\\n é " + strings.Repeat("x", n%7))
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Int, reflect.Int32, reflect.Int64:
			v.SetInt(-int64(n)) // each another value, so that mixed up fields show
		case reflect.Uint, reflect.Uint16, reflect.Uint32, reflect.Uint64:
			v.SetUint(uint64(n))
		default:
			t.Fatalf("the test can't fill a %v", v.Type())
		}
	}
	s := new(specs.Spec)
	fill(reflect.ValueOf(s).Elem())
	return s
}

func TestEveryFieldBothWays(t *testing.T) {
	want := full(t)

	// encoding/json wrote it, we read it.
	data, err := stdjson.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := spec.Parse(data)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, %v", got, err)
	}
	// We wrote it, encoding/json reads it, and finds the same text.
	for _, indent := range []string{"", "\t"} {
		text := spec.Format(want, indent)
		back := new(specs.Spec)
		if err := stdjson.Unmarshal(text, back); err != nil || !reflect.DeepEqual(back, want) {
			t.Errorf("indent %q: wrote %s, %v", indent, text, err)
		}
	}
}

// TestEmptyValues proves that what is empty is left out just as encoding/json
// leaves it out.
func TestEmptyValues(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(schemaTests(t), "good", "*.json"))
	texts := [][]byte{dockerConfig(t), []byte(minimal), []byte(`{"ociVersion":"1.0.0","process":{"cwd":"","args":[],"env":[],
		"oomScoreAdj":0,"rlimits":[],"capabilities":{"bounding":[]},"consoleSize":{"height":0,"width":0}},"root":{"path":""},
		"mounts":[],"annotations":{},"hooks":{},"linux":{"sysctl":{},"resources":{"devices":[{"allow":false,"major":0}],
		"cpu":{"shares":0},"blockIO":{"weightDevice":[{"major":0,"minor":0,"weight":0}]},"rdma":{"a":{}}},
		"timeOffsets":{"boottime":{}},"seccomp":{"defaultAction":"","syscalls":[{"names":null,"action":"","errnoRet":0}]}}}`)}
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil {
			texts = append(texts, data)
		}
	}
	for _, data := range texts {
		s := new(specs.Spec)
		if err := stdjson.Unmarshal(data, s); err != nil {
			t.Fatal(err)
		}
		s.FreeBSD, s.ZOS = nil, nil
		want, err := stdjson.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var w, g any
		got := spec.Format(s, "")
		if stdjson.Unmarshal(want, &w) != nil || stdjson.Unmarshal(got, &g) != nil {
			t.Fatalf("not JSON: %s", got)
		}
		if !reflect.DeepEqual(nullAsEmpty(g), nullAsEmpty(w)) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// nullAsEmpty makes a list that is nil and one that is empty the same.
// encoding/json writes the former as null, which is of no use to a reader.
func nullAsEmpty(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			v[key] = nullAsEmpty(item)
		}
	case []any:
		for i, item := range v {
			v[i] = nullAsEmpty(item)
		}
	case nil:
		return []any{}
	}
	return v
}

// A profile that is written alone comes back whole, with what config.json can do without left out.
func TestFormatSeccomp(t *testing.T) {
	want := full(t).Linux.Seccomp
	var back specs.LinuxSeccomp
	if err := stdjson.Unmarshal(spec.FormatSeccomp(want), &back); err != nil || !reflect.DeepEqual(&back, want) {
		t.Errorf("came back as %+v, %v", back, err)
	}
	least := spec.FormatSeccomp(&specs.LinuxSeccomp{DefaultAction: specs.ActErrno, Syscalls: []specs.LinuxSyscall{
		{Names: []string{"read"}, Action: specs.ActAllow, Args: []specs.LinuxSeccompArg{{Index: 1, Value: 2, Op: specs.OpEqualTo}}},
	}})
	for _, word := range []string{"valueTwo", "architectures", "flags", "errnoRet"} {
		if strings.Contains(string(least), word) {
			t.Errorf("%s in %s", word, least)
		}
	}
	if _, err := spec.ParseSeccomp(least); err != nil || !strings.HasSuffix(string(least), "}\n") {
		t.Errorf("%s: %v", least, err)
	}
}
