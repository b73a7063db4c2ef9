package spec_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/engine/spec"
)

// TestWrongValueForEachField goes through the specification's types: each entry that
// holds a value has a wrong one in wrongValues, or is on the list of those for which
// any value of its type is right. A new version of the specification fails it until
// the new ones have been thought about.
func TestWrongValueForEachField(t *testing.T) {
	tried := map[string]bool{}
	var pointers []string
	for _, test := range wrongValues {
		_, _, err := spec.ParseChecked(patched(t, test.patch))
		var list spec.Errors
		errors.As(err, &list)
		for _, c := range list {
			pointers = append(pointers, c.Pointer)
		}
	}
	// A wrong capability is left out with a warning, as the specification has it.
	for _, set := range []string{"bounding", "effective", "inheritable", "permitted", "ambient"} {
		_, warnings, err := spec.ParseChecked(patched(t, `{"process":{"capabilities":{"`+set+`":["CAP_FLY"]}}}`))
		if err != nil || len(warnings) != 1 {
			t.Errorf("%s: %v, %v", set, warnings, err)
			continue
		}
		pointers = append(pointers, warnings[0].Pointer)
	}
	for _, p := range pointers {
		tried[general(p)] = true
	}
	var all, missing []string
	for _, field := range fields("", reflect.TypeFor[specs.Spec]()) {
		all = append(all, field)
		free := slices.Contains(anyValue, field)
		tried := tried[field] || tried[strings.TrimSuffix(field, "/*")] ||
			slices.ContainsFunc(pointers, func(p string) bool { return strings.HasPrefix(p, field+"/") }) // an entry of a map
		switch {
		case tried && free:
			t.Errorf("%s: there is a wrong value for it, although any is said to be right", field)
		case !tried && !free:
			missing = append(missing, field)
		}
	}
	for _, field := range missing {
		t.Errorf("%s: no wrong value is tried", field)
	}
	for _, field := range anyValue {
		if !slices.Contains(all, field) {
			t.Errorf("%s: the specification has no such entry", field)
		}
	}
}

// general makes a pointer one of the type: * stands for every index.
func general(pointer string) string {
	words := strings.Split(pointer, "/")
	for i, w := range words {
		if w != "" && strings.Trim(w, "0123456789") == "" {
			words[i] = "*"
		}
	}
	return strings.Join(words, "/")
}

// fields lists the entries of a type that hold values: lists, maps and scalars.
func fields(at string, t reflect.Type) []string {
	switch t.Kind() {
	case reflect.Pointer:
		return fields(at, t.Elem())
	case reflect.Slice:
		return fields(at+"/*", t.Elem())
	case reflect.Struct:
	default:
		return []string{at}
	}
	var list []string
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		platform := f.Tag.Get("platform")
		switch {
		case f.Anonymous:
			list = append(list, fields(at, f.Type)...)
		case platform != "" && !slices.Contains(strings.Split(platform, ","), "linux"), name == "-" || name == "":
		default:
			list = append(list, fields(at+"/"+name, f.Type)...)
		}
	}
	return list
}

// anyValue are the entries for which any value of the type is right here; what the
// kernel thinks of it is another matter, and seen by other tests.
var anyValue = []string{
	"/process/terminal", "/process/noNewPrivileges", "/linux/resources/devices/*/allow",
	"/linux/resources/memory/disableOOMKiller", "/linux/resources/memory/useHierarchy", "/linux/resources/memory/checkBeforeUpdate",
	"/linux/intelRdt/enableMonitoring",
	"/process/rlimits/*/hard", // the soft one is judged by it
	"/linux/resources/cpu/shares", "/linux/resources/cpu/realtimePeriod", "/linux/resources/pids/limit",
	"/linux/resources/blockIO/throttleReadBpsDevice/*/rate", "/linux/resources/blockIO/throttleWriteBpsDevice/*/rate",
	"/linux/resources/blockIO/throttleReadIOPSDevice/*/rate", "/linux/resources/blockIO/throttleWriteIOPSDevice/*/rate",
	"/linux/resources/network/classID", "/linux/resources/network/priorities/*/priority",
	"/linux/personality/flags/*", // none is defined, and each is left out with a warning
	"/linux/seccomp/syscalls/*/args/*/value", "/linux/seccomp/syscalls/*/args/*/valueTwo",
}

// What is of the same kind in several places has to be looked at in each.
func init() {
	row := func(patch, want string) { wrongValues = append(wrongValues, struct{ patch, want string }{patch, want}) }
	for _, kind := range []string{"prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"} {
		hook := func(entry string) string { return `{"hooks":{"` + kind + `":[{` + entry + `}]}}` }
		at := "/hooks/" + kind + "/0/"
		row(hook(`"path":"x"`), at+`path: expected an absolute path, found "x"`)
		row(hook(`"path":"/x","args":["\u0000"]`), at+"args/0: contains a NUL byte")
		row(hook(`"path":"/x","env":["A"]`), at+`env/0: expected NAME=VALUE, found "A"`)
		row(hook(`"path":"/x","timeout":0`), at+"timeout: must be greater than zero (leave it out for no limit)")
	}
	const right = `[{"containerID":0,"hostID":1,"size":1}]`
	for _, kind := range []string{"uidMappings", "gidMappings"} {
		other := map[string]string{"uidMappings": "gidMappings", "gidMappings": "uidMappings"}[kind]
		for _, wrong := range []struct{ entry, want string }{
			{`"containerID":4294967295,"hostID":1,"size":1`, "containerID: with size 1 it ends beyond 4294967294, the last id"},
			{`"containerID":1,"hostID":4294967295,"size":1`, "hostID: with size 1 it ends beyond 4294967294, the last id"},
			{`"containerID":1,"hostID":1,"size":0`, "size: must be at least 1"},
		} {
			row(`{"mounts":[{"destination":"/a","options":["bind"],"`+kind+`":[{`+wrong.entry+`}],"`+other+`":`+right+`}]}`,
				"/mounts/0/"+kind+"/0/"+wrong.want)
			row(userNamespace(`"`+kind+`":[{"containerID":0,"hostID":0,"size":1},{`+wrong.entry+`}]`), "/linux/"+kind+"/1/"+wrong.want)
		}
	}
	for _, list := range []string{"weightDevice", "throttleReadBpsDevice", "throttleWriteBpsDevice", "throttleReadIOPSDevice", "throttleWriteIOPSDevice"} {
		at := "/linux/resources/blockIO/" + list + "/0/"
		row(resources(`"blockIO":{"`+list+`":[{"major":4096,"minor":0,"weight":10,"rate":1}]}`), at+"major: expected 0 to 4095, found 4096")
		row(resources(`"blockIO":{"`+list+`":[{"major":1,"minor":-1,"weight":10,"rate":1}]}`), at+"minor: expected 0 to 1048575, found -1")
	}
}
