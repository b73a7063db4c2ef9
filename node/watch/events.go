package watch

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/berth-runtime/berth/internal/escape"
)

// Event is something worth telling.
type Event struct {
	Name     string // drift, mended, step, reload, …: docs/node.md has them all
	Priority int    // of syslog(3): 3 is an error, 4 a warning, 5 a notice, 6 information
	Message  string
	Fields   [][2]string // more for programs: names in capitals
}

// The priorities.
const (
	failure = 3
	warning = 4
	notice  = 5
	info    = 6
)

// journal writes events where they are read: as records with fields to journald,
// where we run as a service of systemd, else as lines.
type journal struct {
	conn *net.UnixConn
	out  io.Writer
}

const journalSocket = "/run/systemd/journal/socket"

func newJournal(getenv func(string) string, out io.Writer) *journal {
	j := &journal{out: out}
	if getenv("JOURNAL_STREAM") != "" { // set by systemd where our output goes to the journal
		if conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: journalSocket, Net: "unixgram"}); err == nil {
			j.conn = conn
		}
	}
	return j
}

func (j *journal) write(e Event) {
	if j.conn != nil {
		if _, err := j.conn.Write(e.record()); err == nil {
			return
		}
	}
	fmt.Fprintf(j.out, "berth-node: %s\n", escape.Message(e.Message))
}

// record is the event in journald's native protocol: NAME=VALUE lines, and where
// a value has line breaks its length in front of it.
func (e Event) record() []byte {
	fields := append([][2]string{
		{"MESSAGE", e.Message}, {"PRIORITY", fmt.Sprint(e.Priority)}, {"SYSLOG_IDENTIFIER", "berth-node"}, {"BERTH_NODE_EVENT", e.Name},
	}, e.Fields...)
	var b []byte
	for _, f := range fields {
		b = append(b, f[0]...)
		if strings.Contains(f[1], "\n") {
			b = append(b, '\n')
			b = binary.LittleEndian.AppendUint64(b, uint64(len(f[1])))
		} else {
			b = append(b, '=')
		}
		b = append(append(b, f[1]...), '\n')
	}
	return b
}
