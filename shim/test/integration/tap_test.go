package integration

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"sync"

	forward "github.com/containerd/containerd/api/services/ttrpc/events/v1"
	"github.com/containerd/ttrpc"
	"google.golang.org/protobuf/proto"
)

// tap notes each event that containerd has taken from a shim. A client of
// containerd's sees none of those that pass while it is not subscribed, such as
// just after containerd has started. So the tap stands between: it has the socket
// that the shims know, and passes everything on to containerd's own. Where that
// is not served, it hangs up, which is what a shim would meet without it.
type tap struct {
	recorder
	d     *daemon
	place string
}

// tap moves the daemon's socket for events away and puts a tap in its place.
// Later daemons have their own in the other place from the start.
func (d *daemon) tap() *tap {
	d.T.Helper()
	t := &tap{d: d, place: d.TTRPC}
	d.TTRPC = d.Dir + "/real.sock"
	if err := os.Rename(t.place, d.TTRPC); err != nil {
		d.T.Fatal(err)
	}
	t.listen()
	return t
}

// listen has to be called again when the daemon that was moved has ended: one
// that ends in order removes the socket where it made it.
func (t *tap) listen() {
	t.d.T.Helper()
	os.Remove(t.place)
	listener, err := net.Listen("unix", t.place)
	if err != nil {
		t.d.T.Fatal(err)
	}
	t.d.T.Cleanup(func() { listener.Close() })
	go func() {
		for {
			shim, err := listener.Accept()
			if err != nil {
				return
			}
			go t.pass(shim)
		}
	}()
}

func (t *tap) pass(shim net.Conn) {
	defer shim.Close()
	containerd, err := net.Dial("unix", t.d.TTRPC)
	if err != nil {
		return
	}
	defer containerd.Close()
	var mu sync.Mutex
	asked := map[uint32]*ttrpc.Request{} // by stream
	go func() {
		defer containerd.Close()
		copyFrames(containerd, shim, func(stream uint32, body []byte) {
			request := new(ttrpc.Request)
			if proto.Unmarshal(body, request) == nil {
				mu.Lock()
				asked[stream] = request
				mu.Unlock()
			}
		})
	}()
	copyFrames(shim, containerd, func(stream uint32, body []byte) {
		var response ttrpc.Response
		mu.Lock()
		request := asked[stream]
		mu.Unlock()
		if proto.Unmarshal(body, &response) != nil || response.Status.GetCode() != 0 || request == nil {
			return
		}
		var m forward.ForwardRequest
		if proto.Unmarshal(request.Payload, &m) == nil {
			t.note(m.Envelope.Topic, m.Envelope.Event.Value)
		}
	})
}

// copyFrames copies messages of ttrpc until there are no more. A message is noted
// before it is passed on, so that nobody can have acted on it before.
func copyFrames(to io.Writer, from io.Reader, note func(stream uint32, body []byte)) {
	for {
		var header [10]byte // length, stream, type, flags
		if _, err := io.ReadFull(from, header[:]); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(header[:]))
		if _, err := io.ReadFull(from, body); err != nil {
			return
		}
		note(binary.BigEndian.Uint32(header[4:]), body)
		if _, err := to.Write(append(header[:], body...)); err != nil {
			return
		}
	}
}
