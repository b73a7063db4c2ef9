package wire

// What a shim with a keeper keeps in memory that outlives it (package keeper), besides the messages
// of a handover. Slots are numbers of pieces there, and 0 is none.

// KeptExit is a process that has been reaped.
type KeptExit struct {
	Pid, Status uint32
	At          *Timestamp
}

func (m *KeptExit) fields(c *codec) {
	c.uint32(1, &m.Pid)
	c.uint32(2, &m.Status)
	message(c, 3, &m.At)
}

// KeptCall is a call that has been read. It is answered when Answer, a frame, has been sent.
type KeptCall struct {
	Conn   uint32 // slot of its connection
	Call   *HandoverCall
	Until  *Timestamp // when the caller gives up, none for never
	Answer []byte
}

func (m *KeptCall) fields(c *codec) {
	c.uint32(1, &m.Conn)
	message(c, 2, &m.Call)
	message(c, 3, &m.Until)
	c.bytes(4, &m.Answer)
}

// KeptEvent is an event that containerd does not have yet.
type KeptEvent struct {
	Number   uint64
	Envelope *Envelope
}

func (m *KeptEvent) fields(c *codec) {
	c.uint64(1, &m.Number)
	message(c, 2, &m.Envelope)
}

// KeptStreams are those of a process: "" is the init's.
type KeptStreams struct {
	Container, ExecID string
	IO                *HandoverIO
}

func (m *KeptStreams) fields(c *codec) {
	c.string(1, &m.Container)
	c.string(2, &m.ExecID)
	message(c, 3, &m.IO)
}

// KeptUpgrade is an upgrade under way: from which version, and the descriptor of its program.
type KeptUpgrade struct {
	From string
	Undo uint32
}

func (m *KeptUpgrade) fields(c *codec) {
	c.string(1, &m.From)
	c.uint32(2, &m.Undo)
}

// KeptSocket is a stream over a connection. What its peer has sent up to Position, in bytes of all
// that has come on the connection, was taken from there. State is its handler's.
type KeptSocket struct {
	Conn          uint32 // slot of its connection
	Stream        uint32
	Method        string
	Position      uint64
	Ended, Broken bool
	State         []byte
}

func (m *KeptSocket) fields(c *codec) {
	c.uint32(1, &m.Conn)
	c.uint32(2, &m.Stream)
	c.string(3, &m.Method)
	c.uint64(4, &m.Position)
	c.bool(5, &m.Ended)
	c.bool(6, &m.Broken)
	c.bytes(7, &m.State)
}

// KeptMessages are messages of a stream that its handler has not done with, up to a Position.
type KeptMessages struct {
	Of       uint32 // slot of the stream
	Position uint64
	Messages []*Data
	Slot     uint32 // of these
	Size     int    // of what is there
}

func (m *KeptMessages) fields(c *codec) {
	c.uint32(1, &m.Of)
	c.uint64(2, &m.Position)
	messages(c, 3, &m.Messages)
}

// KeptStdio is the state of a stream of standard input or output: how much its client has sent of
// data, or has granted.
type KeptStdio struct {
	ID    string
	Heard uint64
}

func (m *KeptStdio) fields(c *codec) {
	c.string(1, &m.ID)
	c.uint64(2, &m.Heard)
}

// KeptUse is what such a stream is used for, and how much its client has been granted, or was sent
// of data.
type KeptUse struct {
	Of   uint32 // slot of the stream
	Use  uint32
	Pipe uint32
	// Stage is what goes on between the stream and the pipe.
	Stage *HandoverStage
	Told  uint64
	Over  bool
}

func (m *KeptUse) fields(c *codec) {
	c.uint32(1, &m.Of)
	c.uint32(2, &m.Use)
	c.uint32(3, &m.Pipe)
	message(c, 4, &m.Stage)
	c.uint64(5, &m.Told)
	c.bool(6, &m.Over)
}
