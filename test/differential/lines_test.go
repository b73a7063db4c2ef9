package main

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

// elsewhere are entries for other systems than Linux.
var elsewhere = strings.Fields("/solaris /windows /vm /zos /freebsd /process/commandLine /process/user/username")

func TestEveryEntry(t *testing.T) {
	sections, err := readSections(configLines)
	if err != nil {
		t.Fatal(err)
	}
	set := map[string]bool{}
	for _, lines := range singles(sections) {
		for _, c := range changesOf(lines[0]) {
			if strings.HasPrefix(c.pointer, "/") {
				var value any
				json.Unmarshal([]byte(c.value), &value)
				entriesOf(withoutElements(c.pointer), value, set)
			}
		}
	}
	base, err := generic(harness.DefaultSpec("/x", "x"))
	if err != nil {
		t.Fatal(err)
	}
	entriesOf("", base, set)
	var missing []string
	for _, entry := range specified("", reflect.TypeFor[specs.Spec](), nil) {
		if !set[entry] && !slices.ContainsFunc(elsewhere, func(other string) bool { return entry == other || strings.HasPrefix(entry, other+"/") }) {
			missing = append(missing, entry)
		}
	}
	if len(missing) > 0 {
		t.Errorf("configs.txt has no line for\n%s", strings.Join(missing, "\n"))
	}
}

// withoutElements is a pointer without the words that choose an element of an array.
func withoutElements(pointer string) string {
	var kept []string
	for _, word := range strings.Split(pointer, "/") {
		if word != "-" && !strings.Contains(word, "=") {
			kept = append(kept, word)
		}
	}
	return strings.Join(kept, "/")
}

// entriesOf notes the pointers of a value's entries, of all elements of an array as one.
func entriesOf(pointer string, value any, found map[string]bool) {
	found[pointer] = true
	switch v := value.(type) {
	case map[string]any:
		for name, part := range v {
			entriesOf(pointer+"/"+name, part, found)
			entriesOf(pointer+"/*", part, found) // of a map by any name
		}
	case []any:
		for _, part := range v {
			entriesOf(pointer, part, found)
		}
	}
}

// specified are the pointers of all entries that the specification's types have.
func specified(pointer string, t reflect.Type, all []string) []string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return specified(pointer, t.Elem(), all)
	case reflect.Map:
		if t.Elem().Kind() == reflect.Struct {
			return specified(pointer+"/*", t.Elem(), all)
		}
	case reflect.Struct:
		for i := range t.NumField() {
			field := t.Field(i)
			if field.Anonymous {
				all = specified(pointer, field.Type, all)
				continue
			}
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			all = append(all, pointer+"/"+name)
			all = specified(pointer+"/"+name, field.Type, all)
		}
	}
	return all
}

func TestLinesApply(t *testing.T) {
	sections, err := readSections(configLines)
	if err != nil {
		t.Fatal(err)
	}
	for _, lines := range singles(sections) {
		config, err := generic(harness.DefaultSpec("/x", "x"))
		if err != nil {
			t.Fatal(err)
		}
		before, _ := json.Marshal(config)
		for _, c := range changesOf(lines[0]) {
			if strings.HasPrefix(c.pointer, "/") {
				if config, err = set(config, c.pointer, c.value); err != nil {
					t.Errorf("%s: %v", lines[0], err)
				}
			}
		}
		after, _ := json.Marshal(config)
		if lines[0][0] == '/' && string(before) == string(after) {
			t.Errorf("%s: changes nothing of the config", lines[0])
		}
	}
}

func TestTable(t *testing.T) {
	rows, err := readTable("# text\n\n== one\nkeys: a * | b\nours: \"\"\nwhen: *x*\nverdict: equal\nwhy: because of\n this: that\n")
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1 || rows[0].why != "because of this: that" {
		t.Fatalf("%+v", rows[0])
	}
	for _, c := range []struct {
		d    difference
		want bool
	}{
		{difference{Key: "a b c", Lines: []string{"y", "/x 1"}}, true},
		{difference{Key: "b", Lines: []string{"/x 1"}}, true},
		{difference{Key: "inside b", Lines: []string{"/x 1"}}, true},
		{difference{Key: "c", Lines: []string{"/x 1"}}, false},
		{difference{Key: "b", Ours: "1", Lines: []string{"/x 1"}}, false},
		{difference{Key: "b", Lines: []string{"/y"}}, false},
	} {
		if got := rows[0].names(c.d); got != c.want {
			t.Errorf("%+v: %v", c.d, got)
		}
	}
	for _, wrong := range []string{"keys: a", "== a\nkeys: a\nwhy: x", "== a\nwhat: b", "== a\nkeys: a\nverdict: worse\nwhy: x"} {
		if _, err := readTable(wrong); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}

// A defect that is known is told as one, and not among what is better.
func TestPageTellsOpenRows(t *testing.T) {
	rows, err := readTable("== broken\nkeys: a\nverdict: open\nwhy: they do it\n\n== fine\nkeys: b\nverdict: better\nwhy: we do it\n")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	page(&text, rows)
	before, after, found := strings.Cut(text.String(), "## Known defects")
	if !found || strings.Contains(before, "broken") || !strings.Contains(after, "| broken | they do it |") || strings.Contains(after, "fine") {
		t.Errorf("the page is %s", text.String())
	}
}

func TestCompare(t *testing.T) {
	lines := []string{"x"}
	keys := func(ours, runc, crun map[string]string) string {
		facts := map[string]map[string]string{"berth": ours}
		if runc != nil {
			facts["runc"] = runc
		}
		if crun != nil {
			facts["crun"] = crun
		}
		var out []string
		for _, d := range compare(facts, "l", lines) {
			out = append(out, d.Key+"="+d.Ours+"/"+d.Runc+"/"+d.Crun)
		}
		return strings.Join(out, " ")
	}
	type m = map[string]string
	for _, c := range []struct {
		name             string
		ours, runc, crun m
		want             string
	}{
		{"the same", m{"a": "1"}, m{"a": "1"}, m{"a": "2"}, ""},
		{"other than runc", m{"a": "1"}, m{"a": "2"}, m{"a": "1"}, "a=1/2/1"},
		{"one that is not there", m{"a": "1"}, m{"b": "2"}, nil, "a=1/(none)/(not run) b=(none)/2/(not run)"},
		{"without runc", m{"a": "1"}, nil, m{"a": "2"}, "a=1/(not run)/2"},
		{"runc refuses", m{"create.code": "0", "a": "1"}, m{"create.code": "1"}, m{"create.code": "0", "a": "2"}, "create.code=0/1/0"},
		{"only we refuse", m{"create.code": "1"}, m{"create.code": "0", "a": "2"}, m{"create.code": "0", "a": "2"}, "create.code=1/0/0"},
		{"all refuse", m{"create.code": "1", "create.says": "a", "hook": "1", "left mount /x": "there"}, m{"create.code": "1", "create.says": "b", "hook": "2"}, nil, "create.says=a/b/(not run) left mount /x=there/(none)/(not run)"},
		{"what is said is for reading", m{"~a": "1"}, m{"~a": "2"}, nil, ""},
		{"exec once more", m{"a": "1", "exec.a": "1"}, m{"a": "2", "exec.a": "2"}, nil, "a=1/2/(not run)"},
	} {
		if got := keys(c.ours, c.runc, c.crun); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
