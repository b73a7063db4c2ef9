package spec_test

import (
	stdjson "encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/engine/spec"
)

// base is a right config, to which the tests apply merge patches (RFC 7396).
const base = `{"ociVersion":"1.3.0","root":{"path":"rootfs"},"process":{"cwd":"/","args":["sh"]},
	"linux":{"namespaces":[{"type":"pid"},{"type":"network"},{"type":"mount"},{"type":"ipc"},{"type":"uts"},
		{"type":"cgroup"},{"type":"time"}]}}`

func patched(t *testing.T, patch string) []byte {
	t.Helper()
	data, err := stdjson.Marshal(merge(parseAny(t, []byte(base)), parseAny(t, []byte(patch))))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func merge(doc, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	d, ok := doc.(map[string]any)
	if !ok {
		d = map[string]any{}
	}
	for key, value := range p {
		if value == nil {
			delete(d, key)
		} else {
			d[key] = merge(d[key], value)
		}
	}
	return d
}

// TestWrongValues has at least one wrong value for each entry whose values are
// limited. What is wanted is the whole error.
func TestWrongValues(t *testing.T) {
	for _, test := range wrongValues {
		_, _, err := spec.ParseChecked(patched(t, test.patch))
		if err == nil {
			t.Errorf("%s: accepted, want %s", test.patch, test.want)
			continue
		}
		if err.Error() != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", test.patch, err, test.want)
		}
		var list spec.Errors
		if !errors.As(err, &list) {
			t.Errorf("%s: the error is a %T", test.patch, err)
		}
	}
}

// TestRightValues holds what engines write, and what only looks wrong.
func TestRightValues(t *testing.T) {
	for _, patch := range rightValues {
		if _, warnings, err := spec.ParseChecked(patched(t, patch)); err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v, warnings %v", patch, err, warnings)
		}
	}
	if _, warnings, err := spec.ParseChecked(dockerConfig(t)); err != nil || len(warnings) > 0 {
		t.Errorf("Docker's config: %v, warnings %v", err, warnings)
	}
}

func TestWarnings(t *testing.T) {
	for _, test := range []struct{ patch, want string }{
		{`{"ociVersion":"1.4.0"}`, `/ociVersion: is newer than 1.3.0, which this runtime implements: entries that came later are ignored`},
		{`{"process":{"capabilities":{"bounding":["CAP_CHOWN","CAP_FLY"]}}}`,
			`/process/capabilities/bounding/1: unknown capability "CAP_FLY" is left out`},
		{`{"process":{"capabilities":{"permitted":["cap_kill"]}}}`,
			`/process/capabilities/permitted/0: unknown capability "cap_kill" is left out`},
		{`{"process":{"capabilities":{"permitted":["CAP_KILL"],"inheritable":["CAP_CHOWN"],"ambient":["CAP_KILL"]}}}`,
			`/process/capabilities/ambient/0: CAP_KILL can't be ambient without being permitted and inheritable: it is left out`},
		{`{"linux":{"intelRdt":{"l3CacheSchema":"L3CODE:0=f"}}}`, `/linux/intelRdt/l3CacheSchema: should start with L3:`},
		{`{"linux":{"intelRdt":{"l3CacheSchema":"L3:0=f\nMB:0=1"}}}`, `/linux/intelRdt/l3CacheSchema: should be one line; schemata takes several`},
		{`{"linux":{"devices":[{"path":"/dev/a","type":"c","major":1,"minor":3},{"path":"/dev/b","type":"u","major":1,"minor":3}]}}`,
			`/linux/devices/1: is the same device as entry 0`},
		{`{"linux":{"devices":[{"path":"/dev/a","type":"c","major":1,"minor":3},{"path":"/dev/a","type":"c","major":1,"minor":3}]}}`,
			`/linux/devices/1: is the same device as entry 0`},
		{`{"linux":{"devices":[{"type":"c","path":"/dev/a","major":1,"minor":1},{"type":"c","path":"/dev/a","major":1,"minor":2}]}}`,
			`/linux/devices/1/path: is another device than in entry 0, which is the one that is made`},
		{`{"linux":{"personality":{"domain":"LINUX","flags":["ADDR_NO_RANDOMIZE"]}}}`, `/linux/personality/flags: no flags are defined: they are left out`},
		{`{"linux":{"uidMappings":[{"containerID":0,"hostID":1,"size":1}]}}`,
			`/linux/uidMappings: maps nothing without a user namespace (add {"type": "user"} to /linux/namespaces)`},
		{`{"linux":{"gidMappings":[{"containerID":0,"hostID":1,"size":1}]}}`,
			`/linux/gidMappings: maps nothing without a user namespace (add {"type": "user"} to /linux/namespaces)`},
		{`{"process":{"scheduler":{"policy":"SCHED_DEADLINE","runtime":1024,"deadline":1024,"nice":5}}}`,
			`/process/scheduler/nice: has no meaning for SCHED_DEADLINE: it is left out`},
		{`{"process":{"scheduler":{"policy":"SCHED_RR","priority":1,"nice":5}}}`, `/process/scheduler/nice: has no meaning for SCHED_RR: it is left out`},
		{resources(`"devices":[{"allow":true,"access":"rwa"}]`), `/linux/resources/devices/0/access: is read as a composition of r, w and m: "rwa"`},
	} {
		_, warnings, err := spec.ParseChecked(patched(t, test.patch))
		if err != nil || len(warnings) != 1 || warnings[0].Error() != test.want {
			t.Errorf("%s:\ngot  %v, %v\nwant %s", test.patch, warnings, err, test.want)
		}
	}
}

// What buildah writes for each step of a build is no reason to warn.
func TestAmbientWithoutInheritable(t *testing.T) {
	_, warnings, err := spec.ParseChecked(patched(t, `{"process":{"capabilities":{"permitted":["CAP_KILL"],"ambient":["CAP_KILL"]}}}`))
	if err != nil || len(warnings) != 0 {
		t.Errorf("%v, %v", warnings, err)
	}
}

func TestTypesAndValuesTogether(t *testing.T) {
	_, _, err := spec.ParseChecked(patched(t, `{"ociVersion":5,"hostname":["x"],"process":{"cwd":"tmp","args":"sh","env":["A"]},
		"linux":{"rootfsPropagation":"up"}}`))
	want := `/hostname: expected a string, found an array; /ociVersion: expected a string, found the number 5; ` +
		`/process/args: expected an array, found the string "sh"; ` +
		`/process/cwd: expected an absolute path, found "tmp"; /process/env/0: expected NAME=VALUE, found "A"; ` +
		`/linux/rootfsPropagation: unknown propagation "up", expected shared, slave, private or unbindable`
	if err == nil || !sameParts(err.Error(), want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	// Without knowing the namespaces, half of the check would be wrong.
	_, _, err = spec.ParseChecked(patched(t, `{"hostname":"h","linux":{"namespaces":5}}`))
	if err == nil || err.Error() != "/linux/namespaces: expected an array, found the number 5" {
		t.Errorf("got %v", err)
	}
}

// sameParts compares two lists of complaints, whatever their order: a patched
// document has its keys sorted.
func sameParts(a, b string) bool {
	count := map[string]int{}
	for _, part := range strings.Split(a, "; ") {
		count[part]++
	}
	for _, part := range strings.Split(b, "; ") {
		count[part]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

func TestPartsAlone(t *testing.T) {
	p, err := spec.ParseProcess([]byte(`{"cwd":"x","args":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	_, err = spec.CheckProcess(p)
	want := `/args: is required and must have at least one entry (the first one is the program to run); /cwd: expected an absolute path, found "x"`
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	r, err := spec.ParseResources([]byte(`{"cpu":{"period":5}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = spec.CheckResources(r); err == nil || err.Error() != "/cpu/period: expected 1000 to 1000000 microseconds, found 5" {
		t.Errorf("got %v", err)
	}
}

func TestSysctlPath(t *testing.T) {
	for name, want := range map[string]string{
		"net.ipv4.ip_forward":               "net/ipv4/ip_forward",
		"net/ipv4/ip_forward":               "net/ipv4/ip_forward",
		"net.ipv4.conf.eth0/100.forwarding": "net/ipv4/conf/eth0.100/forwarding",
		"net/ipv4/conf/eth0.100/forwarding": "net/ipv4/conf/eth0.100/forwarding",
		"kernel":                            "",
		"":                                  "",
		".":                                 "",
		"net..x":                            "",
		"net/../kernel/core_pattern":        "",
		"net.//.kernel.core_pattern":        "",
		"net.ipv4.":                         "",
		"net.a\nb":                          "",
	} {
		if got, ok := spec.SysctlPath(name); got != want || ok != (want != "") {
			t.Errorf("%q: got %q, %v", name, got, ok)
		}
	}
}

func TestPointers(t *testing.T) {
	if got := spec.Join(spec.At("/mounts", 3), "a/b~c"); got != "/mounts/3/a~1b~0c" {
		t.Error(got)
	}
	c := spec.Complaint{Pointer: "/annotations/a\nb", Message: "m\x1b[1m", Hint: "h"}
	if got := c.Error(); got != `/annotations/a\nb: m\x1b[1m (h)` {
		t.Error(got)
	}
}
