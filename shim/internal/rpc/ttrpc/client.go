package ttrpc

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// Client calls a server over one connection, one call at a time. It is not
// safe for use by several goroutines, except for Close.
type Client struct {
	conn   *os.File
	in     *bufio.Reader
	stream uint32
}

// NewClient takes over conn.
func NewClient(conn *os.File) *Client {
	return &Client{conn: conn, in: bufio.NewReaderSize(conn, 512), stream: 1}
}

// Close closes the connection; a call that is waiting fails.
func (c *Client) Close() error { return c.conn.Close() }

// Call calls a method and decodes its answer into resp. An error of type *Error
// is the server's answer; after any other error the connection is of no use.
func (c *Client) Call(service, method string, metadata []*wire.KeyValue, timeout time.Duration, req, resp wire.Message) error {
	stream := c.stream
	c.stream += 2
	b, err := frame(stream, typeRequest, flagRemoteClosed, &wire.Request{
		Service: service, Method: method, Metadata: metadata,
		Payload: wire.Marshal(req), TimeoutNano: int64(timeout),
	})
	if err != nil {
		return &Error{Code: ResourceExhausted, Text: err.Error(), Cause: err}
	}
	if err := c.conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return fmt.Errorf("bound a call of %s: %w", method, err)
	}
	if _, err := c.conn.Write(b); err != nil {
		return fmt.Errorf("call %s: %w", method, err)
	}
	for {
		h, body, err := readFrame(c.in)
		var oversized errOversized
		if errors.As(err, &oversized) && h.stream == stream {
			return &Error{Code: ResourceExhausted, Text: "answer of " + method + ": " + err.Error(), Cause: err}
		}
		if err != nil {
			return fmt.Errorf("wait for the answer of %s: %w", method, err)
		}
		if h.kind != typeResponse || h.stream != stream {
			continue
		}
		var r wire.Response
		if err := wire.Unmarshal(body, &r); err != nil {
			return fmt.Errorf("read the answer of %s: %w", method, err)
		}
		if r.Status != nil && r.Status.Code != 0 {
			return &Error{Code: Code(r.Status.Code), Text: r.Status.Message}
		}
		if err := wire.Unmarshal(r.Payload, resp); err != nil {
			return fmt.Errorf("read the answer of %s: %w", method, err)
		}
		return nil
	}
}
