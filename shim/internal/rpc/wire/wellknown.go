package wire

import (
	"strings"
	"time"
)

// Any is google.protobuf.Any: a message of a type that its URL names.
type Any struct {
	TypeURL string
	Value   []byte
}

func (m *Any) fields(c *codec) {
	c.string(1, &m.TypeURL)
	c.bytes(2, &m.Value)
}

// Is says whether the message is of a type: containerd writes the name alone, and
// others, anypb.New among them, a host and a slash before it.
func (m *Any) Is(name string) bool {
	host, found := strings.CutSuffix(m.TypeURL, name)
	return found && (host == "" || host[len(host)-1] == '/')
}

// Empty is google.protobuf.Empty.
type Empty struct{}

func (*Empty) fields(*codec) {}

// Timestamp is google.protobuf.Timestamp.
type Timestamp struct {
	Seconds int64
	Nanos   int32
}

func (m *Timestamp) fields(c *codec) {
	c.int64(1, &m.Seconds)
	c.int32(2, &m.Nanos)
}

// Time makes a Timestamp of t. The zero time becomes the year 1, which is what
// containerd's clients take for "not yet"; an absent timestamp would read as 1970.
func Time(t time.Time) *Timestamp {
	return &Timestamp{Seconds: t.Unix(), Nanos: int32(t.Nanosecond())}
}

// Time is the moment that m names; of a nil m, the zero time.
func (m *Timestamp) Time() time.Time {
	if m == nil {
		return time.Time{}
	}
	return time.Unix(m.Seconds, int64(m.Nanos)).UTC()
}
