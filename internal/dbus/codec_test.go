package dbus

import (
	"bytes"
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// cases are values of all types, each of them as it is read.
var cases = []struct {
	s      Signature
	values []any
}{
	{"", nil},
	{"ybnqiuxtd", []any{byte(1), true, int16(-2), uint16(3), int32(-4), uint32(5), int64(-6), uint64(7), 8.5}},
	{"yt", []any{byte(1), uint64(math.MaxUint64)}},
	{"sog", []any{"text with ä", ObjectPath("/a/b_1"), Signature("a{sv}")}},
	{"sss", []any{"", "a", "abcd"}},
	{"as", []any{[]string{"one", "", "three"}}},
	{"ay", []any{[]byte{1, 2, 3}}},
	{"ayay", []any{[]byte{}, []byte{9}}},
	{"at", []any{[]any{uint64(1), uint64(2)}}},
	{"yat", []any{byte(1), []any{}}},
	{"aay", []any{[]any{[]byte{1}, []byte{2, 3}}}},
	{"a(st)", []any{[]any{[]any{"a", uint64(1)}, []any{"bc", uint64(2)}}}},
	{"(y(x)s)", []any{[]any{byte(1), []any{int64(2)}, "s"}}},
	{"a{sv}", []any{[]any{[]any{"k", Variant{"u", uint32(1)}}, []any{"l", Variant{"as", []string{"x"}}}}}},
	{"v", []any{Variant{"v", Variant{"(yv)", []any{byte(1), Variant{"b", false}}}}}},
	{"ssa(sv)a(sa(sv))", []any{"name", "replace", []any{[]any{"PIDs", Variant{"au", []any{uint32(1)}}}}, []any{}}},
}

func TestRoundTrip(t *testing.T) {
	for _, c := range cases {
		text, err := Encode(nil, c.s, c.values)
		if err != nil {
			t.Errorf("%q: %v", c.s, err)
			continue
		}
		got, err := Decode(text, binary.LittleEndian, c.s)
		if err != nil || !reflect.DeepEqual(got, c.values) {
			t.Errorf("%q: %#v, %v", c.s, got, err)
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	deep := any(byte(1))
	deepType := "y"
	for range 100 {
		deep, deepType = []any{deep}, "a"+deepType
	}
	for _, c := range []struct {
		s      Signature
		values []any
	}{
		{"s", []any{"a\x00b"}}, {"s", []any{"\xff"}}, {"o", []any{ObjectPath("a")}}, {"o", []any{ObjectPath("/a/")}},
		{"g", []any{Signature("a")}}, {"u", []any{1}}, {"u", []any{"1"}}, {"s", nil}, {"", []any{"s"}},
		{"(ss)", []any{[]any{"one"}}}, {"(s)", []any{[]any{"one", "two"}}}, {"(s)", []any{"one"}},
		{"v", []any{Variant{"", nil}}}, {"v", []any{Variant{"ss", "a"}}}, {"v", []any{Variant{"u", "a"}}},
		{"as", []any{[]byte{1}}}, {"as", []any{[]uint32{1}}}, {"as", []any{"s"}}, {"a{vs}", nil}, {"()", nil}, {"z", nil}, {"a{sv", nil},
		{Signature(deepType), []any{deep}},
	} {
		if text, err := Encode(nil, c.s, c.values); err == nil {
			t.Errorf("%q %v: % x", c.s, c.values, text)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct {
		s    Signature
		text string
	}{
		{"u", "\x01\x00\x00"}, {"b", "\x02\x00\x00\x00"}, {"yu", "\x01\x01\x00\x00\x01\x00\x00\x00"}, {"s", "\x01\x00\x00\x00a"},
		{"s", "\x01\x00\x00\x00aa"}, {"s", "\x02\x00\x00\x00a\x00\x00"}, {"s", "\x01\x00\x00\x00\xff\x00"}, {"s", "\xff\xff\xff\xffa\x00"},
		{"o", "\x01\x00\x00\x00a\x00"}, {"g", "\x01z\x00"}, {"v", "\x02yy\x00\x01\x01"}, {"v", "\x00\x00"}, {"ay", "\x02\x00\x00\x00a"},
		{"au", "\x02\x00\x00\x00\x01\x00"}, {"ay", "\xff\xff\xff\xffa"}, {"", "a"},
		{"v", strings.Repeat("\x01v\x00", 100) + "\x01y\x00\x01"},
	} {
		if v, err := Decode([]byte(c.text), binary.LittleEndian, c.s); err == nil {
			t.Errorf("%q %q: %v", c.s, c.text, v)
		}
	}
}

// FuzzDecode: whatever is read can be written, and is the same when read again.
func FuzzDecode(f *testing.F) {
	for _, c := range cases {
		text, err := Encode(nil, c.s, c.values)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(c.s), text)
	}
	f.Fuzz(func(t *testing.T, s string, text []byte) {
		if strings.Contains(s, "h") {
			return // descriptors are read and never written
		}
		values, err := Decode(text, binary.LittleEndian, Signature(s))
		if err != nil {
			return
		}
		again, err := Encode(nil, Signature(s), values)
		if err != nil {
			if hasDescriptor(values) {
				return
			}
			t.Fatalf("%q %#v: %v", s, values, err)
		}
		if !bytes.Equal(again, text) {
			t.Fatalf("%q: % x became % x", s, text, again)
		}
	})
}

// hasDescriptor finds a variant that the index of a descriptor is in.
func hasDescriptor(v any) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, hasDescriptor)
	case Variant:
		return strings.Contains(string(v.Type), "h") || hasDescriptor(v.Value)
	}
	return false
}

// FuzzMessage: no message makes the reader fail otherwise than by an error.
func FuzzMessage(f *testing.F) {
	for _, c := range cases {
		m := message{kind: kindSignal, serial: 7, path: "/a", iface: "b.c", member: "D", signature: c.s, body: c.values}
		text, err := m.encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, m := range []message{
		{kind: kindCall, serial: 1, path: "/", iface: "a.b", member: "C", dest: "d.e"},
		{kind: kindReturn, serial: 2, reply: 1, signature: "s", body: []any{"x"}},
		{kind: kindError, serial: 3, reply: 1, errorName: "a.b.Failed", signature: "s", body: []any{"why"}},
	} {
		text, err := m.encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("B\x04\x01\x01\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x1d\x01\x01o\x00\x00\x00\x00\x02/a\x00\x00\x00\x00\x00\x00\x03\x01s\x00\x00\x00\x00\x01D\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _ = readMessage(bytes.NewReader(text))
	})
}
