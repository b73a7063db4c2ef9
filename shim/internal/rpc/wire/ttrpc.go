package wire

// Request is a ttrpc call.
type Request struct {
	Service     string
	Method      string
	Payload     []byte
	TimeoutNano int64
	Metadata    []*KeyValue
}

func (m *Request) fields(c *codec) {
	c.string(1, &m.Service)
	c.string(2, &m.Method)
	c.bytes(3, &m.Payload)
	c.int64(4, &m.TimeoutNano)
	messages(c, 5, &m.Metadata)
}

// KeyValue is one entry of a ttrpc call's metadata.
type KeyValue struct {
	Key   string
	Value string
}

func (m *KeyValue) fields(c *codec) {
	c.string(1, &m.Key)
	c.string(2, &m.Value)
}

// Response is a ttrpc answer: a payload, or a status that is not OK.
type Response struct {
	Status  *Status
	Payload []byte
}

func (m *Response) fields(c *codec) {
	message(c, 1, &m.Status)
	c.bytes(2, &m.Payload)
}

// Status is google.rpc.Status.
type Status struct {
	Code    int32
	Message string
	Details []*Any
}

func (m *Status) fields(c *codec) {
	c.int32(1, &m.Code)
	c.string(2, &m.Message)
	messages(c, 3, &m.Details)
}
