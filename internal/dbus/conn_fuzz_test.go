package dbus

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// FuzzConn: a bus that says anything at all gets no further than an error: a call is answered or
// fails, and what waits is let go when it hangs up.
func FuzzConn(f *testing.F) {
	greeting := []byte("DATA\r\nOK 0123\r\n")
	for _, m := range []message{
		{kind: kindReturn, serial: 2, reply: 1, signature: "s", body: []any{"x"}},
		{kind: kindError, serial: 3, reply: 1, errorName: "a.b.Failed", signature: "s", body: []any{"why"}},
		{kind: kindError, serial: 3, reply: 1, errorName: "a.b.Failed", signature: "u", body: []any{uint32(1)}},
		{kind: kindSignal, serial: 7, path: "/a", iface: "b.c", member: "D", signature: "as", body: []any{[]string{"x"}}},
	} {
		text, err := m.encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append(greeting[:len(greeting):len(greeting)], append(text, text...)...))
	}
	f.Add([]byte("REJECTED EXTERNAL\r\n"))
	f.Add([]byte("DATA\r\n"))
	f.Add(greeting)
	path := filepath.Join(f.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { l.Close() })
	f.Fuzz(func(t *testing.T, said []byte) {
		go func() {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			// What comes after the greeting comes when the call has been made: it may be the
			// answer.
			greeted := max(bytes.Index(said, []byte("OK")), 0)
			greeted += bytes.IndexByte(said[greeted:], '\n') + 1
			heard := make([]byte, 512)
			_, _ = conn.Read(heard)
			_, _ = conn.Write(said[:greeted])
			_ = conn.SetReadDeadline(time.Now().Add(time.Second)) // a greeting that is none leaves it waiting for more
			if greeted > 0 {
				_, _ = conn.Read(heard)
			}
			_, _ = conn.Write(said[greeted:])
			conn.Close()
		}()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		c, err := Dial(ctx, path, quiet{})
		if err != nil {
			return
		}
		defer c.Close()
		if _, err := c.Call(ctx, Call{Destination: "a.b", Path: "/", Interface: "a.b", Member: "C"}); errors.Is(err, context.DeadlineExceeded) || os.IsTimeout(err) {
			t.Errorf("the call waits for a bus that has hung up: %v", err)
		}
	})
}

// quiet hears signals and does nothing.
type quiet struct{}

func (quiet) Signal(*Signal) {}
func (quiet) Closed()        {}
