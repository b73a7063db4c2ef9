package spec_test

import (
	stdjson "encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/engine/spec"
	"github.com/berth-runtime/berth/internal/json"
)

// minimal is the least config that passes the check.
const minimal = `{"ociVersion":"1.3.0","root":{"path":"rootfs"},"process":{"cwd":"/","args":["sh"]}}`

func TestParseTypes(t *testing.T) {
	for _, test := range []struct{ doc, want string }{
		{`[]`, `expected an object, found an array`},
		{`{}`, `/ociVersion: is required, but missing`},
		{`{"ociVersion":null}`, `/ociVersion: is required, but missing`},
		{`{"ociVersion":1}`, `/ociVersion: expected a string, found the number 1`},
		{`{"ociVersion":"1.3.0","ociVersion":"1.2.0"}`, `/ociVersion: the key appears twice`},
		{`{"ociVersion":"1.3.0","linux":{"resources":{"cpu":{"shares":"many"}}}}`,
			`/linux/resources/cpu/shares: expected an unsigned integer, found the string "many"`},
		{`{"ociVersion":"1.3.0","linux":{"resources":{"memory":{"limit":1e9}}}}`,
			`/linux/resources/memory/limit: expected an integer, found the number 1e9`},
		{`{"ociVersion":"1.3.0","process":{"cwd":"/","args":["a",null],"user":{"uid":-1}}}`,
			`/process/args/1: expected a string, found null; /process/user/uid: expected an unsigned integer, found the number -1`},
		{`{"ociVersion":"1.3.0","mounts":[{"source":"x"},{"destination":"/a","options":"ro"}]}`,
			`/mounts/0/destination: is required, but missing; /mounts/1/options: expected an array, found the string "ro"`},
		{`{"ociVersion":"1.3.0","linux":{"sysctl":{"net.ipv4.ip_forward":1}}}`,
			`/linux/sysctl/net.ipv4.ip_forward: expected a string, found the number 1`},
		{`{"ociVersion":"1.3.0","linux":{"timeOffsets":{"monotonic":{"secs":1},"monotonic":{"secs":2}}}}`,
			`/linux/timeOffsets/monotonic: the key appears twice`},
		{`{"ociVersion":"1.3.0","linux":{"resources":{"blockIO":{"weightDevice":[{"weight":70000}]}}}}`,
			`/linux/resources/blockIO/weightDevice/0/weight: expected an unsigned integer up to 65535, found the number 70000; ` +
				`/linux/resources/blockIO/weightDevice/0/major: is required, but missing; ` +
				`/linux/resources/blockIO/weightDevice/0/minor: is required, but missing`},
	} {
		_, err := spec.Parse([]byte(test.doc))
		if err == nil || err.Error() != test.want {
			t.Errorf("%s:\ngot  %v\nwant %s", test.doc, err, test.want)
		}
		var list spec.Errors
		if !errors.As(err, &list) {
			t.Errorf("%s: the error is a %T", test.doc, err)
		}
	}
}

func TestParseSyntax(t *testing.T) {
	_, err := spec.Parse([]byte("{\n  \"ociVersion\": \"1.3.0\",\n}"))
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) || syntax.Line != 3 || syntax.Column != 1 {
		t.Errorf("got %v", err)
	}
}

func TestUnknownFields(t *testing.T) {
	s, err := spec.Parse([]byte(`{"ociVersion":"1.3.0","new":{"deep":[{"x":[]}]},
		"windows":{"layerFolders":5},"root":{"path":"r","paths":"q"},"process":null}`))
	want := &specs.Spec{Version: "1.3.0", Root: &specs.Root{Path: "r"}}
	if err != nil || !reflect.DeepEqual(s, want) {
		t.Errorf("got %+v, %v", s, err)
	}
}

// Who reads a config by encoding/json takes such a key for the one that it resembles, a long s and
// the sign of kelvins included.
func TestKeysInAnotherCase(t *testing.T) {
	for doc, want := range map[string]string{
		`{"ociVersion":"1.3.0","process":{"cwd":"/","args":["a"],"user":{"UID":1000,"gid":5}}}`:                      "/process/user/UID: is an unknown key (did you mean uid?)",
		`{"ociVersion":"1.3.0","process":{"cwd":"/","args":["a"],"NoNewPrivileges":true}}`:                           "/process/NoNewPrivileges: is an unknown key (did you mean noNewPrivileges?)",
		`{"ociVersion":"1.3.0","root":{"path":"r","readOnly":true}}`:                                                 "/root/readOnly: is an unknown key (did you mean readonly?)",
		`{"ociVersion":"1.3.0","linux":{"maſkedPaths":["/proc/kcore"]}}`:                                             "/linux/maſkedPaths: is an unknown key (did you mean maskedPaths?)",
		`{"ociVersion":"1.3.0","linux":{"resources":{"Memory":{"limit":1}}}}`:                                        "/linux/resources/Memory: is an unknown key (did you mean memory?)",
		`{"ociVersion":"1.3.0","linux":{"seccomp":{"defaultAction":"SCMP_ACT_ALLOW","SYSCALLS":[]}}}`:                "/linux/seccomp/SYSCALLS: is an unknown key (did you mean syscalls?)",
		`{"ociVersion":"1.3.0","annotations":{"A":"1","a":"2"},"linux":{"sysctl":{"Net.core.somaxconn":"1"}}}`:       "",
		`{"ociVersion":"1.3.0","process":{"cwd":"/","args":["a"],"user":{"uid":1,"UID":0}},"hooks":{"Prestart":[]}}`: "/process/user/UID: is an unknown key (did you mean uid?); /hooks/Prestart: is an unknown key (did you mean prestart?)",
	} {
		_, err := spec.Parse([]byte(doc))
		if err == nil && want != "" || err != nil && err.Error() != want {
			t.Errorf("%s:\ngot  %v\nwant %s", doc, err, want)
		}
	}
	if _, err := spec.ParseProcess([]byte(`{"cwd":"/","args":["a"],"User":{}}`)); err == nil || err.Error() != "/User: is an unknown key (did you mean user?)" {
		t.Errorf("of a process: %v", err)
	}
}

func TestManyComplaints(t *testing.T) {
	doc := `{"ociVersion":"1.3.0","process":{"cwd":"/","args":[` + strings.Repeat("1,", 69) + `1]}}`
	_, err := spec.Parse([]byte(doc))
	var list spec.Errors
	if !errors.As(err, &list) || len(list) != 51 || list[50].Error() != "and 20 more" {
		t.Errorf("got %v", err)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Error("the error has several lines")
	}
}

func TestParts(t *testing.T) {
	p, err := spec.ParseProcess([]byte(`{"cwd":"/","args":["id"],"terminal":true}`))
	if err != nil || p.Cwd != "/" || !p.Terminal || p.Args[0] != "id" {
		t.Errorf("got %+v, %v", p, err)
	}
	if _, err = spec.ParseProcess([]byte(`{"args":"id"}`)); err == nil ||
		err.Error() != "/args: expected an array, found the string \"id\"; /cwd: is required, but missing" {
		t.Errorf("got %v", err)
	}
	r, err := spec.ParseResources([]byte(`{"memory":{"limit":-1},"pids":{"limit":0}}`))
	if err != nil || *r.Memory.Limit != -1 || *r.Pids.Limit != 0 {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err = spec.ParseResources([]byte(`{"cpu":[]}`)); err == nil || err.Error() != "/cpu: expected an object, found an array" {
		t.Errorf("got %v", err)
	}
}

func TestLoad(t *testing.T) {
	bundle := filepath.Join(t.TempDir(), "a b\nc")
	_, err := spec.Load(bundle)
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "there is no bundle directory") || strings.Contains(err.Error(), "\n") {
		t.Errorf("no bundle: %v", err)
	}
	if err := os.Mkdir(bundle, 0o755); err != nil {
		t.Fatal(err)
	}
	_, err = spec.Load(bundle)
	if !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "config.json: no such file or directory (") {
		t.Errorf("no config: %v", err)
	}
	config := filepath.Join(bundle, "config.json")
	write := func(data string) {
		t.Helper()
		if err := os.WriteFile(config, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(minimal)
	if s, err := spec.Load(bundle); err != nil || s.Process.Args[0] != "sh" {
		t.Errorf("got %+v, %v", s, err)
	}
	write(`{"ociVersion":"1.3.0","process":{"cwd":"x"}}`)
	_, _, err = spec.LoadChecked(bundle)
	var list spec.Errors
	if !errors.As(err, &list) || len(list) != 3 || !strings.HasPrefix(err.Error(), "config.json: /root: is required, but missing; /process/") {
		t.Errorf("wrong config: %v", err)
	}
	write("")
	if _, err = spec.Load(bundle); err == nil || err.Error() != "config.json: line 1, column 1: expected a value, found the end of the document" {
		t.Errorf("empty: %v", err)
	}
	write(minimal)
	if err := os.Truncate(config, spec.MaxSize+1); err != nil {
		t.Fatal(err)
	}
	if _, err = spec.Load(bundle); err == nil || err.Error() != "config.json: larger than 16 MiB, which no config needs" {
		t.Errorf("large: %v", err)
	}
	if err := os.Remove(config); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(config, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err = spec.Load(bundle); err == nil || err.Error() != "config.json: not a regular file" {
		t.Errorf("pipe: %v", err)
	}
}

// schemaTests returns the directory of the OCI schema's own test data.
func schemaTests(t testing.TB) string {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/opencontainers/runtime-spec").Output()
	dir := filepath.Join(strings.TrimSpace(string(out)), "schema", "test", "config")
	if _, statErr := os.Stat(dir); err != nil || statErr != nil {
		t.Skipf("the sources of the runtime-spec module are not here: %v, %v", err, statErr)
	}
	return dir
}

func TestSchemaData(t *testing.T) {
	dir := schemaTests(t)
	good, _ := filepath.Glob(filepath.Join(dir, "good", "*.json"))
	bad, _ := filepath.Glob(filepath.Join(dir, "bad", "*.json"))
	if len(good) < 5 || len(bad) < 4 {
		t.Fatalf("only %d good and %d bad examples", len(good), len(bad))
	}
	for _, file := range good {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := spec.Parse(data); err != nil {
			t.Errorf("%s: %v", filepath.Base(file), err)
		}
	}
	for _, file := range bad {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(filepath.Base(file), "freebsd") {
			continue // not our platform: ignored
		}
		s, err := spec.Parse(data)
		if err == nil {
			_, err = spec.Check(s)
		}
		if err == nil {
			t.Errorf("%s: accepted", filepath.Base(file))
		}
	}
}

func TestAgreesWithEncodingJSON(t *testing.T) {
	dir := schemaTests(t)
	files, _ := filepath.Glob(filepath.Join(dir, "good", "*.json"))
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := spec.Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		want := new(specs.Spec)
		if err := stdjson.Unmarshal(data, want); err != nil {
			t.Fatal(err)
		}
		want.FreeBSD, want.ZOS = nil, nil
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", filepath.Base(file), got, want)
		}
	}
}
