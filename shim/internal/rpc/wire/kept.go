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
