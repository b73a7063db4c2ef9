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
