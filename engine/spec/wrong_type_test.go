package spec_test

import (
	stdjson "encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/engine/spec"
	"github.com/berth-runtime/berth/internal/json"
)

// TestWrongTypeInEachField sets each field of the config to a value of a wrong
// type, one at a time, and wants one complaint, with the field's pointer.
func TestWrongTypeInEachField(t *testing.T) {
	data, err := stdjson.Marshal(full(t))
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	try := func(doc any, pointer string, value any, set func(any)) {
		t.Helper()
		wrong := map[bool]any{true: 5, false: []string{"wrong"}}[isString(value)]
		if isList(value) {
			wrong = map[string]any{"wrong": true}
		}
		set(wrong)
		text, err := stdjson.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		set(value)
		_, err = spec.Parse(text)
		var list spec.Errors
		if !errors.As(err, &list) || len(list) != 1 || list[0].Pointer != pointer || !strings.HasPrefix(list[0].Message, "expected ") {
			t.Errorf("%s: got %v", pointer, err)
		}
		tried++
	}
	var doc any
	dec := stdjson.NewDecoder(strings.NewReader(string(data)))
	dec.UseNumber()
	if err := dec.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	var walk func(pointer []byte, v any)
	walk = func(pointer []byte, v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, item := range v {
				p := json.AppendKey(pointer[:len(pointer):len(pointer)], key)
				try(doc, string(p), item, func(value any) { v[key] = value })
				walk(p, item)
			}
		case []any:
			for i, item := range v {
				p := json.AppendIndex(pointer[:len(pointer):len(pointer)], i)
				try(doc, string(p), item, func(value any) { v[i] = value })
				walk(p, item)
			}
		}
	}
	walk(nil, doc)
	if tried < 250 {
		t.Errorf("only %d values tried", tried)
	}
}

func isString(v any) bool { _, ok := v.(string); return ok }

func isList(v any) bool { return reflect.ValueOf(v).Kind() == reflect.Slice }

// TestNullInEachField sets each field to null: what the schema requires is
// missing then, in a list it is a fault, anything else is as if absent.
func TestNullInEachField(t *testing.T) {
	for _, test := range []struct{ doc, want string }{
		{`{"process":{"cwd":null,"args":null,"env":null,"terminal":null,"user":null,"oomScoreAdj":null,"capabilities":null}}`,
			`/process/cwd: is required, but missing`},
		{`{"root":{"path":null}}`, `/root/path: is required, but missing`},
		{`{"mounts":null,"hooks":null,"annotations":null,"linux":null,"hostname":null}`, ``},
		{`{"mounts":[null]}`, `/mounts/0: expected an object, found null`},
		{`{"annotations":{"a":null}}`, `/annotations/a: expected a string, found null`},
		{`{"linux":{"resources":{"rdma":{"a":null}}}}`, `/linux/resources/rdma/a: expected an object, found null`},
		{`{"linux":{"resources":{"pids":{"limit":null},"memory":{"limit":null},"devices":null,"unified":null}}}`, ``},
		{`{"linux":{"seccomp":{"defaultAction":"x","syscalls":[{"names":["a"],"action":"b","args":null,"errnoRet":null}]}}}`, ``},
		{`{"linux":{"seccomp":{"defaultAction":"x","syscalls":[{"names":null,"action":"b"}]}}}`,
			`/linux/seccomp/syscalls/0/names: is required, but missing`},
	} {
		_, err := spec.Parse([]byte(`{"ociVersion":"1.3.0",` + test.doc[1:]))
		if test.want == "" && err != nil || test.want != "" && (err == nil || err.Error() != test.want) {
			t.Errorf("%s: got %v, want %q", test.doc, err, test.want)
		}
	}
}

// required are the entries whose lack Parse complains about.
func TestRequired(t *testing.T) {
	for _, pointer := range []string{
		"/ociVersion", "/root/path", "/process/cwd", "/process/consoleSize/height", "/process/consoleSize/width",
		"/process/rlimits/0/type", "/process/rlimits/0/hard", "/process/rlimits/0/soft",
		"/process/scheduler/policy", "/process/ioPriority/class", "/process/ioPriority/priority", "/mounts/0/destination",
		"/mounts/0/uidMappings/0/containerID", "/mounts/0/uidMappings/0/hostID", "/mounts/0/uidMappings/0/size",
		"/hooks/prestart/0/path", "/hooks/poststop/1/path",
		"/linux/uidMappings/0/containerID", "/linux/uidMappings/0/hostID", "/linux/gidMappings/0/size",
		"/linux/namespaces/0/type", "/linux/devices/0/path", "/linux/devices/0/type",
		"/linux/resources/devices/0/allow", "/linux/resources/blockIO/weightDevice/0/major",
		"/linux/resources/blockIO/throttleReadBpsDevice/0/minor", "/linux/resources/blockIO/throttleWriteIOPSDevice/0/rate", "/linux/resources/hugepageLimits/0/pageSize",
		"/linux/resources/hugepageLimits/0/limit", "/linux/resources/network/priorities/0/name",
		"/linux/resources/network/priorities/0/priority", "/linux/seccomp/defaultAction",
		"/linux/seccomp/syscalls/0/names", "/linux/seccomp/syscalls/0/action", "/linux/seccomp/syscalls/0/args/0/index",
		"/linux/seccomp/syscalls/0/args/0/value", "/linux/seccomp/syscalls/0/args/0/op",
		"/linux/memoryPolicy/mode", "/linux/personality/domain",
	} {
		data, err := stdjson.Marshal(full(t))
		if err != nil {
			t.Fatal(err)
		}
		var doc any
		if err := stdjson.Unmarshal(data, &doc); err != nil {
			t.Fatal(err)
		}
		if !remove(doc, strings.Split(pointer[1:], "/")) {
			t.Errorf("%s: no such entry", pointer)
			continue
		}
		if data, err = stdjson.Marshal(doc); err != nil {
			t.Fatal(err)
		}
		_, err = spec.Parse(data)
		if err == nil || err.Error() != pointer+": is required, but missing" {
			t.Errorf("%s: got %v", pointer, err)
		}
	}
}

func remove(doc any, path []string) bool {
	for ; len(path) > 1; path = path[1:] {
		switch v := doc.(type) {
		case map[string]any:
			doc = v[path[0]]
		case []any:
			doc = v[path[0][0]-'0']
		}
	}
	v, _ := doc.(map[string]any)
	_, ok := v[path[0]]
	delete(v, path[0])
	return ok
}

// FuzzParse holds Parse against encoding/json.
func FuzzParse(f *testing.F) {
	f.Add(dockerConfig(f))
	f.Add(rareConfig(f))
	f.Add([]byte(minimal))
	f.Add(spec.Format(spec.Example(true), " "))
	f.Add([]byte(`{"ociVersion":"1.3.0","linux":{"resources":{"blockIO":{"weightDevice":[{"major":1,"minor":2,"weight":3}]}},
		"timeOffsets":{"boottime":{"secs":-1}},"netDevices":{"a":{"name":"b"}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := spec.Parse(data)
		want := new(specs.Spec)
		stdErr := stdjson.Unmarshal(data, want)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("several lines: %v", err)
			}
			if stdErr == nil && !deliberate(err) {
				t.Errorf("refused, but encoding/json takes it: %v", err)
			}
			return
		}
		if _, err := spec.Check(got); err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("several lines: %v", err)
		}
		text := spec.Format(got, "")
		if again, err := spec.Parse(text); err != nil || string(spec.Format(again, "")) != string(text) {
			t.Errorf("does not survive: %s, %v", text, err)
		}
		if foreignOrFolded(data) {
			return // read by encoding/json, unknown fields to us
		}
		if stdErr != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, encoding/json %+v, %v", got, want, stdErr)
		}
	})
}

// deliberate tells whether each complaint is one of those where Parse is
// stricter than encoding/json on purpose.
func deliberate(err error) bool {
	is := func(message string, parts ...string) bool {
		for _, part := range parts {
			if strings.Contains(message, part) {
				return true
			}
		}
		return false
	}
	var list spec.Errors
	if !errors.As(err, &list) {
		return is(err.Error(), "UTF-8", "surrogate", "nested deeper", "more than", "'\\ufeff'")
	}
	for _, c := range list {
		if !is(c.Message, "is required, but missing", "appears twice", "found null", "(did you mean ") && !strings.HasPrefix(c.Message, "and ") {
			return false
		}
	}
	return true
}

// foreignOrFolded tells whether a document has a key that encoding/json matches
// to a field and we don't.
func foreignOrFolded(data []byte) bool {
	var known []string
	var names func(t reflect.Type)
	seen := map[reflect.Type]bool{}
	names = func(t reflect.Type) {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			names(t.Elem())
		case reflect.Struct:
			if seen[t] {
				return
			}
			seen[t] = true
			for i := range t.NumField() {
				name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
				known = append(known, name)
				names(t.Field(i).Type)
			}
		}
	}
	names(reflect.TypeFor[specs.Spec]())
	var doc any
	if stdjson.Unmarshal(data, &doc) != nil {
		return false
	}
	var walk func(v any) bool
	walk = func(v any) bool {
		switch v := v.(type) {
		case map[string]any:
			for key, item := range v {
				for _, name := range known {
					if key != name && strings.EqualFold(key, name) {
						return true
					}
				}
				if walk(item) {
					return true
				}
			}
		case []any:
			for _, item := range v {
				if walk(item) {
					return true
				}
			}
		}
		return false
	}
	top, _ := doc.(map[string]any)
	for _, key := range []string{"solaris", "windows", "vm", "zos", "freebsd"} {
		if _, ok := top[key]; ok {
			return true
		}
	}
	return walk(doc)
}
