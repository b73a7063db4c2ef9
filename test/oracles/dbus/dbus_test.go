// Package dbus_test lets godbus read what our client writes in a message, and writes for it, in
// both byte orders.
package dbus_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	godbus "github.com/godbus/dbus/v5"

	"github.com/berth-runtime/berth/internal/dbus"
)

// cases are values of all types, each of them as it is read.
var cases = []struct {
	s      dbus.Signature
	values []any
}{
	{"", nil},
	{"ybnqiuxtd", []any{byte(1), true, int16(-2), uint16(3), int32(-4), uint32(5), int64(-6), uint64(7), 8.5}},
	{"yt", []any{byte(1), uint64(math.MaxUint64)}},
	{"sog", []any{"text with ä", dbus.ObjectPath("/a/b_1"), dbus.Signature("a{sv}")}},
	{"sss", []any{"", "a", "abcd"}},
	{"as", []any{[]string{"one", "", "three"}}},
	{"ay", []any{[]byte{1, 2, 3}}},
	{"ayay", []any{[]byte{}, []byte{9}}},
	{"at", []any{[]any{uint64(1), uint64(2)}}},
	{"yat", []any{byte(1), []any{}}},
	{"aay", []any{[]any{[]byte{1}, []byte{2, 3}}}},
	{"a(st)", []any{[]any{[]any{"a", uint64(1)}, []any{"bc", uint64(2)}}}},
	{"(y(x)s)", []any{[]any{byte(1), []any{int64(2)}, "s"}}},
	{"a{sv}", []any{[]any{[]any{"k", dbus.Variant{Type: "u", Value: uint32(1)}}}}},
	{"v", []any{dbus.Variant{Type: "v", Value: dbus.Variant{Type: "(yv)", Value: []any{byte(1), dbus.Variant{Type: "b", Value: false}}}}}},
}

// forgotten says that godbus, having read values of a type, can't write them again: it forgets
// which were structs.
func forgotten(signature string) bool { return strings.ContainsAny(signature, "({v") }

// echo answers each call, after the handshake, with its own body, as godbus understood it: first in
// one byte order, then in the other.
func echo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		in := bufio.NewReader(conn)
		for range 3 { // NUL and AUTH, DATA, BEGIN
			_, _ = in.ReadString('\n')
		}
		_, _ = io.WriteString(conn, "DATA\r\nOK 0123\r\n")
		for n := 0; ; n++ {
			asked, err := godbus.DecodeMessage(in)
			if err != nil {
				return
			}
			if err := asked.IsValid(); err != nil {
				t.Errorf("%v: %v", asked, err)
			}
			if got := fmt.Sprint(asked.Headers[godbus.FieldMember].Value(), asked.Headers[godbus.FieldDestination].Value()); got != "De.f" {
				t.Errorf("called %s", got)
			}
			answer := &godbus.Message{Type: godbus.TypeMethodReply, Headers: map[godbus.HeaderField]godbus.Variant{
				godbus.FieldReplySerial: godbus.MakeVariant(asked.Serial()),
			}}
			if s, has := asked.Headers[godbus.FieldSignature]; has && !forgotten(s.String()) {
				answer.Headers[godbus.FieldSignature], answer.Body = s, asked.Body
			}
			order := []binary.ByteOrder{binary.LittleEndian, binary.BigEndian}[n%2]
			if err := answer.EncodeTo(conn, order); err != nil {
				t.Errorf("godbus writes %v: %v", answer, err)
				return
			}
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return path
}

type deaf struct{}

func (deaf) Signal(*dbus.Signal) {}
func (deaf) Closed()             {}

func TestAgainstTheUsualLibrary(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := dbus.Dial(ctx, echo(t), deaf{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, tc := range cases {
		for range 2 { // byte orders
			got, err := c.Call(ctx, dbus.Call{Destination: "e.f", Path: "/a", Interface: "b.c", Member: "D", Signature: tc.s, Args: tc.values})
			want := tc.values
			if forgotten(string(tc.s)) {
				want = nil
			}
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%q: %#v, %v", tc.s, got, err)
			}
		}
	}
}
