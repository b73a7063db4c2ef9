package gvariant

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
)

// show writes a value with the type of everything, in the format itself, so
// that what comes out can be parsed again.
func show(v Value) string {
	switch v.Type[0] {
	case 'b':
		return strconv.FormatBool(v.Bool)
	case 'y', 'q', 'u', 't':
		return "@" + v.Type + " " + strconv.FormatUint(v.Uint, 10)
	case 'n', 'i', 'x', 'h':
		return "@" + v.Type + " " + strconv.FormatInt(v.Int, 10)
	case 'd':
		s := strings.ToLower(strconv.FormatFloat(v.Double, 'g', -1, 64))
		return "@d " + strings.ReplaceAll(s, "+inf", "inf")
	case 's', 'o', 'g':
		return "@" + v.Type + " " + quote(v.Text)
	}
	var parts []string
	for _, m := range v.Members {
		parts = append(parts, show(m))
	}
	list := strings.Join(parts, ", ")
	switch v.Type[0] {
	case 'a':
		if strings.HasPrefix(v.Type, "a{") {
			for i, m := range v.Members {
				parts[i] = show(m.Members[0]) + ": " + show(m.Members[1])
			}
			return "@" + v.Type + " {" + strings.Join(parts, ", ") + "}"
		}
		return "@" + v.Type + " [" + list + "]"
	case '(':
		if len(parts) == 1 {
			list += ","
		}
		return "(" + list + ")"
	case '{':
		return "{" + list + "}"
	case 'v':
		return "<" + list + ">"
	case 'm':
		if len(parts) == 0 {
			return "@" + v.Type + " nothing"
		}
		return "just " + list
	}
	panic(v.Type)
}

func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + `"`
}

// parsed are texts of all that the format has.
var parsed = []struct{ text, typ, want string }{
	{"true", "b", "true"},
	{" false ", "b", "false"},
	{"boolean true", "b", "true"},
	{"5", "i", "@i 5"},
	{"-5", "i", "@i -5"},
	{"+5", "i", "@i 5"},
	{"0x1F", "i", "@i 31"},
	{"017", "i", "@i 15"},
	{"0", "i", "@i 0"},
	{"byte 0xff", "y", "@y 255"},
	{"@y 7", "y", "@y 7"},
	{"int16 -32768", "n", "@n -32768"},
	{"uint16 65535", "q", "@q 65535"},
	{"int32 -2147483648", "i", "@i -2147483648"},
	{"uint32 4294967295", "u", "@u 4294967295"},
	{"int64 -9223372036854775808", "x", "@x -9223372036854775808"},
	{"uint64 123456789", "t", "@t 123456789"},
	{"@t 18446744073709551615", "t", "@t 18446744073709551615"},
	{"handle 3", "h", "@h 3"},
	{"1.5", "d", "@d 1.5"},
	{"1e3", "d", "@d 1000"},
	{"-1.5e-3", "d", "@d -0.0015"},
	{".5", "d", "@d 0.5"},
	{"double 5", "d", "@d 5"},
	{"[0x10, 1.5]", "ad", "@ad [@d 16, @d 1.5]"},
	{"double -0x10", "d", "@d -16"},
	{"-inf", "d", "@d -inf"},
	{"infinity", "d", "@d inf"},
	{"nan", "d", "@d nan"},
	{"'inactive-or-failed'", "s", `@s "inactive-or-failed"`},
	{`"it's"`, "s", `@s "it's"`},
	{`'\'\"\\\a\b\f\n\r\t\v\q'`, "s", `@s "'\"\\\u0007\u0008\u000c\u000a\u000d\u0009\u000bq"`},
	{`'\u00e4\U0001F600'`, "s", `@s "ä😀"`},
	{"'a\\\nb'", "s", `@s "ab"`},
	{"objectpath '/a/b_1'", "o", `@o "/a/b_1"`},
	{"@o '/'", "o", `@o "/"`},
	{"signature 'a{sv}(ii)'", "g", `@g "a{sv}(ii)"`},
	{"b'ab'", "ay", "@ay [@y 97, @y 98, @y 0]"},
	{`b"\101\0\n\x"`, "ay", "@ay [@y 65, @y 0, @y 10, @y 120, @y 0]"},
	{"[1, 2, 3]", "ai", "@ai [@i 1, @i 2, @i 3]"},
	{"[1, 2.5]", "ad", "@ad [@d 1, @d 2.5]"},
	{"[[1, 2], [3.0]]", "aad", "@aad [@ad [@d 1, @d 2], @ad [@d 3]]"},
	{"[1, uint64 2]", "at", "@at [@t 1, @t 2]"},
	{"@as []", "as", "@as []"},
	{"@as[]", "as", "@as []"},
	{"[@as [], ['x']]", "aas", `@aas [@as [], @as [@s "x"]]`},
	{"[[], ['x']]", "aas", `@aas [@as [], @as [@s "x"]]`},
	{"@ay [1, 0x2]", "ay", "@ay [@y 1, @y 2]"},
	{"()", "()", "()"},
	{"(1,)", "(i)", "(@i 1,)"},
	{"('a', uint64 1)", "(st)", `(@s "a", @t 1)`},
	{"@(st) ('a', 1)", "(st)", `(@s "a", @t 1)`},
	{"@(st)('a', 1)", "(st)", `(@s "a", @t 1)`},
	{"[('/dev/null', 'rw'), ('char-pts', 'rwm')]", "a(ss)", ""},
	{"@a(st) [('/dev/sda', 5)]", "a(st)", ""},
	{"{'k': 1, 'l': 2}", "a{si}", `@a{si} {@s "k": @i 1, @s "l": @i 2}`},
	{"{'k': <1>}", "a{sv}", `@a{sv} {@s "k": <@i 1>}`},
	{"@a{sv} {}", "a{sv}", "@a{sv} {}"},
	{"{1, 'x'}", "{is}", `{@i 1, @s "x"}`},
	{"[{1, 'x'}, {2, 'y'}]", "a{is}", `@a{is} {@i 1: @s "x", @i 2: @s "y"}`},
	{"<5>", "v", "<@i 5>"},
	{"<<'x'>>", "v", `<<@s "x">>`},
	{"[<1>, <'x'>]", "av", ""},
	{"just 5", "mi", "just @i 5"},
	{"@mi nothing", "mi", "@mi nothing"},
	{"@ms 'x'", "ms", `just @s "x"`},
	{"['hello', nothing]", "ams", ""},
	{"[nothing, 1, 2.5]", "amd", "@amd [@md nothing, just @d 1, just @d 2.5]"},
	{"[(1, nothing), (2, 'x')]", "a(ims)", ""},
}

func TestParse(t *testing.T) {
	for _, c := range parsed {
		v, err := Parse(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		got := show(v)
		if v.Type != c.typ || c.want != "" && got != c.want {
			t.Errorf("%s: got %s %s, want %s %s", c.text, v.Type, got, c.typ, c.want)
		}
		again, err := Parse(got)
		if err != nil || again.Type != v.Type || show(again) != got {
			t.Errorf("%s: %s does not come back: %v", c.text, got, err)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct {
		text   string
		column int
		says   string
	}{
		{"", 1, "missing"},
		{"   ", 4, "missing"},
		{"hello", 1, "quotes"},
		{"5 6", 3, "more text"},
		{"'x", 1, "not terminated"},
		{`'x\`, 3, "backslash"},
		{`'\u12'`, 2, "4 hexadecimal"},
		{`'\ud800'`, 2, "not a character"},
		{`'\u0000'`, 2, "not a character"},
		{`'\U00110000'`, 2, "not a character"},
		{`b'\777'`, 3, "more than a byte"},
		{"'\xff'", 2, "UTF-8"},
		{"[]", 1, "cannot be told"},
		{"<[]>", 2, "cannot be told"},
		{"nothing", 1, "cannot be told"},
		{"[1, 'x']", 5, "common type"},
		{"[1 2]", 4, `expected ","`},
		{"[1, 2", 6, `expected ","`},
		{"[1,]", 4, "unexpected"},
		{"(1)", 1, "comma"},
		{"(1, 2,)", 7, "missing"},
		{"(1 2)", 4, "expected"},
		{"{'a': 1, 'b': 'x'}", 10, "common type"},
		{"{'a': 1, 'b', 2}", 10, "colon"},
		{"{[1]: 2}", 2, "key"},
		{"{'a' 1}", 6, "expected"},
		{"<5", 3, `expected ">"`},
		{"@", 1, "no type"},
		{"@z 5", 1, "no type"},
		{"@a", 1, "no type"},
		{"@{vs} {<1>, 'x'}", 1, "no type"},
		{"@t 'x'", 4, `type "t"`},
		{"@s nothing", 4, `type "s"`},
		{"@i 5.0", 4, `type "i"`},
		{"uint64 -1", 1, "out of range"},
		{"byte 256", 1, "out of range"},
		{"2147483648", 1, "out of range"},
		{"uint64 18446744073709551616", 1, "out of range"},
		{"1e999", 1, "out of range"},
		{"08", 1, "not a number"},
		{"0x", 1, "not a number"},
		{"1.2.3", 1, "not a number"},
		{"double 0x", 1, "not a number"},
		{"double 0x1p2", 1, "not a number"},
		{"--5", 2, "more text"},
		{"1_000", 1, ""},
		{"objectpath 'x'", 1, "object path"},
		{"objectpath '/a//b'", 1, "object path"},
		{"signature 'z'", 1, "signature"},
		{"'a\x00b'", 1, "zero byte"},
		{"ä", 1, "unexpected 'ä'"},
		{"]", 1, "unexpected"},
		{"just", 5, "missing"},
		{strings.Repeat("[", 1000), 66, "too deep"},
		{strings.Repeat("just ", 1000) + "1", 0, "too deep"},
		{"@" + strings.Repeat("a", 1000) + "s []", 1, "no type"},
	} {
		v, err := Parse(c.text)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%.40q is %s (%v)", c.text, v.Type, err)
			continue
		}
		if c.column != 0 && c.says != "" && e.Column != c.column || !strings.Contains(e.Message, c.says) {
			t.Errorf("%.40q: %v, want column %d: …%s…", c.text, err, c.column, c.says)
		}
	}
}

func TestNaN(t *testing.T) {
	v, err := Parse("nan")
	if err != nil || !math.IsNaN(v.Double) {
		t.Errorf("%v %v", v, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range parsed {
		f.Add(c.text)
	}
	for _, text := range []string{"[('a', 1), ('b', 2)]", "{'k': <@as []>}", "b'x\\101'", "[nothing, just 1.5]", "@a{s(ib)} {}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := Parse(text)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Column < 1 || e.Column > len(text)+1 {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		written := show(v)
		again, err := Parse(written)
		// The depth of the text is bounded, and annotations add to it.
		if err != nil && strings.Contains(err.Error(), "too deep") {
			return
		}
		if err != nil || again.Type != v.Type || show(again) != written {
			t.Fatalf("%q is %s, which does not come back: %v", text, written, err)
		}
	})
}
