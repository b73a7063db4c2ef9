package device

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/opencontainers/runtime-spec/specs-go"
)

func foldJSON(t *testing.T, text string) (Policy, error) {
	t.Helper()
	var list []specs.LinuxDeviceCgroup
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return Fold(list)
}

func TestFold(t *testing.T) {
	for _, c := range []struct {
		name, rules string
		want        []string
	}{
		{"nothing", `[]`, nil},
		{"deny all is the start", `[{"allow":false,"access":"rwm"}]`, nil},
		{"unset is all", `[{"allow":true}]`, []string{"+a *:* rwm"}},
		{"the spec's example", `[{"allow":false,"access":"rwm"},{"allow":true,"type":"c","major":10,"minor":229,"access":"rw"},{"allow":true,"type":"b","major":8,"minor":0,"access":"r"}]`,
			[]string{"+c 10:229 rw", "+b 8:0 r"}},
		{"-1 is all", `[{"allow":true,"type":"c","major":-1,"minor":-1,"access":"m"}]`, []string{"+c *:* m"}},
		{"the last wins", `[{"allow":true,"type":"c","major":1,"minor":3,"access":"rw"},{"allow":false,"type":"c","major":1,"access":"w"}]`,
			[]string{"+c 1:3 r", "-c 1:* w"}},
		{"covered by later ones together", `[{"allow":true,"type":"c","major":1,"minor":3,"access":"rw"},{"allow":true,"type":"c","access":"r"},{"allow":true,"type":"a","access":"w"}]`,
			[]string{"+c *:* r", "+a *:* w"}},
		{"said twice", `[{"allow":true,"type":"c","major":1,"minor":3},{"allow":true,"type":"c","major":1,"minor":3}]`, []string{"+c 1:3 rwm"}},
		{"all again", `[{"allow":true,"type":"c","major":1,"minor":3},{"allow":false},{"allow":true,"type":"b","major":8}]`, []string{"+b 8:* rwm"}},
	} {
		p, err := foldJSON(t, c.rules)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got []string
		for _, r := range p.Rules() {
			sign := "-"
			if r.Allow {
				sign = "+"
			}
			got = append(got, sign+r.String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestFoldErrors(t *testing.T) {
	_, err := foldJSON(t, `[{"type":"x"},{"major":-2},{"allow":true},{"minor":4294967296},{"access":"x"}]`)
	var all ledger.Errors
	if !errors.As(err, &all) {
		t.Fatalf("%v", err)
	}
	var got []string
	for _, e := range all {
		got = append(got, e.Pointer)
	}
	if want := []string{"/devices/0/type", "/devices/1/major", "/devices/3/minor", "/devices/4/access"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func lineTexts(lines []Line) []string {
	var s []string
	for _, l := range lines {
		s = append(s, strings.TrimPrefix(l.File(), "devices.")+" "+l.Text)
	}
	return s
}

func TestV1(t *testing.T) {
	for _, c := range []struct {
		name, rules string
		want        []string
		hole        string
	}{
		{"nothing", `[]`, []string{"deny a *:* rwm"}, ""},
		{"all", `[{"allow":true}]`, []string{"allow a *:* rwm"}, ""},
		{"some", `[{"allow":false},{"allow":true,"type":"c","major":1,"minor":3,"access":"rw"},{"allow":true,"type":"c","access":"m"}]`,
			[]string{"deny a *:* rwm", "allow c 1:3 rwm", "allow c *:* m"}, ""},
		{"all but some", `[{"allow":true},{"allow":false,"type":"b","major":8,"access":"w"}]`, []string{"allow a *:* rwm", "deny b 8:* w"}, ""},
		{"one type", `[{"allow":true,"type":"c"}]`, []string{"deny a *:* rwm", "allow c *:* rwm"}, ""},
		{"read of everything", `[{"allow":true,"access":"r"}]`, []string{"deny a *:* rwm", "allow c *:* r", "allow b *:* r"}, ""},
		{"a hole in a wildcard", `[{"allow":true,"type":"c","major":1},{"allow":false,"type":"c","major":1,"minor":3}]`, nil, "c 1:3"},
		{"open again inside what is closed", `[{"allow":true},{"allow":false,"type":"c"},{"allow":true,"type":"c","major":1}]`,
			[]string{"deny a *:* rwm", "allow b *:* rwm", "allow c 1:* rwm"}, ""},
		{"a major and a minor meet", `[{"allow":true,"type":"c","major":1,"access":"r"},{"allow":true,"type":"c","minor":3,"access":"w"}]`,
			[]string{"deny a *:* rwm", "allow c 1:* r", "allow c *:3 w", "allow c 1:3 rw"}, ""},
	} {
		p, err := foldJSON(t, c.rules)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := p.V1()
		if got := lineTexts(lines); !slices.Equal(got, c.want) && !sameLines(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		if c.hole == "" && err != nil || c.hole != "" && (err == nil || !strings.Contains(err.Error(), c.hole) || !strings.HasPrefix(err.Error(), "/devices: ")) {
			t.Errorf("%s: error %v", c.name, err)
		}
	}
}

// sameLines compares without the order of the exceptions, which has no meaning.
func sameLines(a, b []string) bool {
	if len(a) == 0 || len(b) == 0 || a[0] != b[0] {
		return false
	}
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// TestRandomRules checks all outputs against the plain meaning of the list.
func TestRandomRules(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	expressible := 0
	for range 3000 {
		checkRules(t, randomRules(r, r.IntN(7)), &expressible)
		if t.Failed() {
			return
		}
	}
	// The check of v1 must not pass by finding holes everywhere.
	if expressible < 1000 {
		t.Errorf("only %d of 3000 lists can be said on v1", expressible)
	}
}

func checkRules(t *testing.T, rules []Rule, expressible *int) {
	t.Helper()
	p := fold(rules)
	program := p.Program()
	var model v1Model
	model.allow = true
	lines, v1Err := p.V1()
	if v1Err == nil {
		*expressible++
		for _, l := range lines {
			model.write(l)
		}
	}
	everyAccess(func(typ Type, major, minor uint32, access Access) {
		if t.Failed() {
			return
		}
		want := lastWins(rules, typ, major, minor, access)
		if got := p.Allows(typ, major, minor, access); got != want {
			t.Errorf("%v folded to %v: %c %d:%d %s is %v, want %v", rules, p.rules, typ, major, minor, access, got, want)
		}
		got, err := runProgram(program, typ, major, minor, access)
		if err != nil || got != want {
			t.Errorf("%v: program: %c %d:%d %s is %v (%v), want %v", rules, typ, major, minor, access, got, err, want)
		}
		// Without access the kernel's v1 check wants some exception to match.
		if v1Err == nil && access != 0 {
			if got := model.allows(typ, major, minor, access); got != want {
				t.Errorf("%v: v1 %v: %c %d:%d %s is %v, want %v", rules, lineTexts(lines), typ, major, minor, access, got, want)
			}
		}
	})
}

// TestHolesAreReal makes sure that V1 refuses only what no default with
// exceptions can say: a wildcard with more than one of its members, and on the
// other side another with less, or both defaults would do.
func TestHolesAreReal(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		rules := randomRules(r, 1+r.IntN(4))
		p := fold(rules)
		if _, err := p.V1(); err == nil {
			continue
		}
		for _, allow := range []bool{true, false} {
			_, hole, ok := p.against(p.cells(), allow)
			if ok {
				t.Fatalf("%v can be said", rules)
			}
			wider := false
			for _, q := range p.cells() {
				more := p.granted(q) &^ p.granted(hole)
				if allow {
					more = p.granted(hole) &^ p.granted(q)
				}
				wider = wider || q != hole && q.covers(hole) && more != 0
			}
			if !wider {
				t.Fatalf("%v: %v is not a hole", rules, hole)
			}
		}
	}
}

func TestUpdateV1(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		var model v1Model
		model.allow = true
		before, after := fold(randomRules(r, r.IntN(5))), fold(randomRules(r, r.IntN(5)))
		first, err1 := before.V1()
		_, err2 := after.V1()
		if err1 != nil || err2 != nil {
			continue
		}
		for _, l := range first {
			model.write(l)
		}
		wasDeny := !model.allow
		lines, err := after.UpdateV1(model.list())
		if err != nil {
			t.Fatal(err)
		}
		gentle := len(lines) == 0 || !strings.HasPrefix(lines[0].Text, "a ")
		for _, l := range lines {
			model.write(l)
			if !gentle || !wasDeny {
				continue
			}
			everyAccess(func(typ Type, major, minor uint32, access Access) {
				if access != 0 && before.Allows(typ, major, minor, access) && after.Allows(typ, major, minor, access) && !model.allows(typ, major, minor, access) {
					t.Fatalf("%v to %v: %c %d:%d %s is lost in between", before, after, typ, major, minor, access)
				}
			})
		}
		everyAccess(func(typ Type, major, minor uint32, access Access) {
			if access != 0 && model.allows(typ, major, minor, access) != after.Allows(typ, major, minor, access) {
				t.Fatalf("%v to %v by %v: %c %d:%d %s is wrong", before, after, lineTexts(lines), typ, major, minor, access)
			}
		})
	}
	if _, err := (Policy{}).UpdateV1("c 1 rwm"); err == nil {
		t.Error("a torn devices.list is taken")
	}
}

func TestDefaults(t *testing.T) {
	p, err := Fold(Defaults())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		t            Type
		major, minor uint32
		access       Access
		want         bool
	}{
		{Char, 1, 3, All, true}, {Char, 1, 5, Read | Write, true}, {Char, 1, 7, Write, true}, {Char, 1, 8, Read, true}, {Char, 1, 9, Read, true},
		{Char, 5, 0, Read | Write, true}, {Char, 5, 1, Write, false}, {Char, 5, 2, Read | Write, true}, {Char, 136, 7, Read | Write, true},
		{Char, 10, 229, Mknod, true}, {Block, 8, 0, Mknod, true},
		{Char, 10, 229, Read, false}, {Block, 8, 0, Read, false}, {Char, 1, 1, Read, false}, {Char, 10, 200, Read | Write, true}, {Char, 10, 201, Read, false},
	} {
		if got := p.Allows(c.t, c.major, c.minor, c.access); got != c.want {
			t.Errorf("%c %d:%d %s is %v", c.t, c.major, c.minor, c.access, got)
		}
	}
	if _, err := p.V1(); err != nil {
		t.Error(err)
	}
}

const procDevices = `Character devices:
  1 mem
  4 /dev/vc/0
  4 tty
  5 /dev/tty
136 pts
137 pts
226 drm

Block devices:
  8 sd
 65 sd
253 device-mapper
`

func TestSystemd(t *testing.T) {
	for _, c := range []struct {
		name, rules string
		systemd     int
		policy      string
		want        []Allowed
	}{
		{"nothing", `[]`, 252, "strict", nil},
		{"all", `[{"allow":true}]`, 252, "auto", nil},
		{"a node", `[{"allow":true,"type":"c","major":1,"minor":3}]`, 252, "strict", []Allowed{{"/dev/char/1:3", "rwm"}}},
		{"a group", `[{"allow":true,"type":"c","major":226,"access":"rw"}]`, 252, "strict", []Allowed{{"char-drm", "rw"}}},
		{"a name of two majors", `[{"allow":true,"type":"c","major":136},{"allow":true,"type":"b","major":8}]`, 252, "strict", []Allowed{{"char-136", "rwm"}, {"block-8", "rwm"}}},
		{"a name of two majors, old", `[{"allow":true,"type":"c","major":136}]`, 239, "strict", []Allowed{{"char-pts", "rwm"}}},
		{"a major of nobody", `[{"allow":true,"type":"c","major":99}]`, 252, "strict", []Allowed{{"char-99", "rwm"}}},
		{"a major of nobody, old", `[{"allow":true,"type":"c","major":99}]`, 239, "strict", nil},
		{"wildcards", `[{"allow":true,"type":"c","access":"m"},{"allow":true,"type":"b","minor":3,"access":"r"}]`, 252, "strict", []Allowed{{"char-*", "m"}, {"block-*", "r"}}},
		{"both types, merged", `[{"allow":true,"access":"m"},{"allow":true,"type":"b","access":"r"}]`, 252, "strict", []Allowed{{"char-*", "m"}, {"block-*", "rm"}}},
		{"what is denied later is left to our filter", `[{"allow":true,"type":"c","major":226},{"allow":false,"type":"c","major":226,"minor":0}]`, 252, "strict", []Allowed{{"char-drm", "rwm"}}},
	} {
		p, err := foldJSON(t, c.rules)
		if err != nil {
			t.Fatal(err)
		}
		policy, got := p.Systemd(procDevices, c.systemd)
		if policy != c.policy || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %s %v, want %s %v", c.name, policy, got, c.policy, c.want)
		}
	}
}

// FuzzRules takes each four bytes as a rule.
func FuzzRules(f *testing.F) {
	f.Add([]byte{1, 0, 0, 7, 0, 1, 2, 3})
	f.Add([]byte{1, 9, 1, 2, 1, 8, 2, 1, 1, 7, 3, 7})
	f.Fuzz(func(t *testing.T, data []byte) {
		var rules []Rule
		for ; len(data) >= 4 && len(rules) < 12; data = data[4:] {
			rules = append(rules, Rule{
				Allow: data[0]&1 != 0, Type: []Type{AnyType, Block, Char}[data[1]%3],
				Major: int64(data[2]&3) - 1, Minor: int64(data[2]>>2&3) - 1, Access: Access(data[3] & 7),
			})
		}
		n := 0
		checkRules(t, rules, &n)
	})
}

func FuzzParseList(f *testing.F) {
	f.Add("a *:* rwm\n")
	f.Add("c 1:3 rwm\nb *:3 r\n")
	f.Fuzz(func(t *testing.T, text string) {
		e, err := parseList(text)
		if err == nil && len(e.set) > len(e.order) {
			t.Fatalf("%q: %v", text, e)
		}
	})
}

func BenchmarkProgram(b *testing.B) {
	p, err := Fold(Defaults())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		p.Program()
	}
}
