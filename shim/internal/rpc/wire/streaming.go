package wire

// Messages of containerd.services.streaming.v1.Streaming, whose streams carry
// each of them in an Any, and the names of their types there.
const (
	StreamInitURL   = "containerd.services.streaming.v1.StreamInit"
	DataURL         = "containerd.types.transfer.Data"
	WindowUpdateURL = "containerd.types.transfer.WindowUpdate"
	EmptyURL        = "google.protobuf.Empty"
)

type StreamInit struct {
	ID string
}

func (m *StreamInit) fields(c *codec) {
	c.string(1, &m.ID)
}

type Data struct {
	Data []byte
}

func (m *Data) fields(c *codec) {
	c.bytes(1, &m.Data)
}

type WindowUpdate struct {
	Update int32
}

func (m *WindowUpdate) fields(c *codec) {
	c.int32(1, &m.Update)
}

// HandoverStream is a stream over a connection. Queue is what the peer has sent and its handler has
// not taken, Ended says that no more will come, or with Broken, that it sent too much. State is the
// handler's.
type HandoverStream struct {
	Stream        uint32
	Method        string // service and method, with a slash between
	Queue         []*Data
	Ended, Broken bool
	State         []byte
	// Where the shim before was killed: its slot in the memory of a keeper, what is there in place
	// of Queue, and up to where that is what has come on the connection.
	Slot     uint32
	Kept     []*KeptMessages
	Position uint64
}

func (m *HandoverStream) fields(c *codec) {
	c.uint32(1, &m.Stream)
	c.string(2, &m.Method)
	messages(c, 3, &m.Queue)
	c.bool(4, &m.Ended)
	c.bool(5, &m.Broken)
	c.bytes(6, &m.State)
}

// StreamState is the state of a stream of standard input or output: what it is used for, the pipe
// that it leads to or from, what has been read and is still to be passed on, and how much more may
// be sent.
type StreamState struct {
	ID   string
	Use  uint32
	Pipe uint32
	Rest []byte
	Room int64
	Last bool // of a pipe that has ended, Rest
	Over bool
}

func (m *StreamState) fields(c *codec) {
	c.string(1, &m.ID)
	c.uint32(2, &m.Use)
	c.uint32(3, &m.Pipe)
	c.bytes(4, &m.Rest)
	c.int64(5, &m.Room)
	c.bool(6, &m.Last)
	c.bool(7, &m.Over)
}
