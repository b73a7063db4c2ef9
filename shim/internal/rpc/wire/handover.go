package wire

// What a shim hands to the program that takes its place (package server). These messages are ours
// alone: a field that has been in a release keeps its number and its meaning, and a new one gets a
// new number. A descriptor is named by its number, and 0 is none.

// Handover is all of it.
type Handover struct {
	// Format is that of the program that wrote this, and Least the oldest one that loses nothing of
	// it.
	Format, Least uint32
	Version       string
	// Program is the path of the program that wrote this.
	Program string
	Server  *HandoverServer
	Events  *HandoverEvents
	Tasks   *HandoverTasks
	Box     *HandoverBox
	// Debug is the listening socket for debugging, if there is one.
	Debug uint32
	// Kept says that the shim has a keeper: this is to be looked at only, what is taken over is in
	// the keeper's memory.
	Kept bool
}

func (m *Handover) fields(c *codec) {
	c.uint32(1, &m.Format)
	c.uint32(2, &m.Least)
	c.string(3, &m.Version)
	c.string(4, &m.Program)
	message(c, 5, &m.Server)
	message(c, 6, &m.Events)
	message(c, 7, &m.Tasks)
	message(c, 8, &m.Box)
	c.uint32(9, &m.Debug)
	c.bool(10, &m.Kept)
}

// HandoverServer is the socket and the connections.
type HandoverServer struct {
	Listener uint32
	Conns    []*HandoverConn
}

func (m *HandoverServer) fields(c *codec) {
	c.uint32(1, &m.Listener)
	messages(c, 2, &m.Conns)
}

// HandoverConn is a connection, or with no descriptor one whose peer is gone: In has been read and
// not understood yet, of an oversized message Skip bytes are still to be dropped, and Out is still
// to be written.
type HandoverConn struct {
	FD      uint32
	In, Out []byte
	Skip    uint64
	Over    uint32 // stream of the oversized message
	Length  uint32 // and how long it said that it is
	Last    uint32 // the greatest stream so far
	Calls   []*HandoverCall
	Slot    uint32 // in the memory of a keeper, where the shim before was killed
	OutSlot uint32 // and of what is to be written
	// Position is how many bytes have come before In, which the memory of a keeper tells.
	Position uint64
	Streams  []*HandoverStream
}

func (m *HandoverConn) fields(c *codec) {
	c.uint32(1, &m.FD)
	c.bytes(2, &m.In)
	c.bytes(3, &m.Out)
	c.uint64(4, &m.Skip)
	c.uint32(5, &m.Over)
	c.uint32(6, &m.Length)
	c.uint32(7, &m.Last)
	messages(c, 8, &m.Calls)
	messages(c, 9, &m.Streams)
}

// HandoverCall is a call that waits for something, and is to go on waiting.
type HandoverCall struct {
	Stream          uint32
	Service, Method string
	Payload         []byte
	// Left is how many nanoseconds the caller still waits: 0 is for ever.
	Left int64
	Slot uint32 // in the memory of a keeper, where the shim before was killed
}

func (m *HandoverCall) fields(c *codec) {
	c.uint32(1, &m.Stream)
	c.string(2, &m.Service)
	c.string(3, &m.Method)
	c.bytes(4, &m.Payload)
	c.int64(5, &m.Left)
}

// HandoverEvents are the events that containerd does not have yet, and the connection to it, on
// which the first of them may be under way.
type HandoverEvents struct {
	Queue   []*Envelope
	Refused uint32 // times, the first of them
	FD      uint32
	Next    uint32 // stream of the next call
	Waiting uint32 // stream of the call that is under way, 0 for none
	Left    int64  // nanoseconds that are left to it
	In, Out []byte
}

func (m *HandoverEvents) fields(c *codec) {
	messages(c, 1, &m.Queue)
	c.uint32(2, &m.Refused)
	c.uint32(3, &m.FD)
	c.uint32(4, &m.Next)
	c.uint32(5, &m.Waiting)
	c.int64(6, &m.Left)
	c.bytes(7, &m.In)
	c.bytes(8, &m.Out)
}

// HandoverTasks are the containers, and which others are awaited.
type HandoverTasks struct {
	Containers []*HandoverContainer
	Expected   []*HandoverExpected
	First      string
	FirstLeft  int64
	Sandbox    string
	Asked      bool
	Slot       uint32 // in the memory of a keeper, where the shim before was killed
}

func (m *HandoverTasks) fields(c *codec) {
	messages(c, 1, &m.Containers)
	messages(c, 2, &m.Expected)
	c.string(3, &m.First)
	c.int64(4, &m.FirstLeft)
	c.string(5, &m.Sandbox)
	c.bool(6, &m.Asked)
}

// HandoverExpected is a container that a start has announced, for so many nanoseconds more.
type HandoverExpected struct {
	ID   string
	Left int64
}

func (m *HandoverExpected) fields(c *codec) {
	c.string(1, &m.ID)
	c.int64(2, &m.Left)
}

// HandoverOptions are the options of a container.
type HandoverOptions struct {
	Runc       *RuncOptions
	Grouping   string
	DriverSaid bool
}

func (m *HandoverOptions) fields(c *codec) {
	message(c, 1, &m.Runc)
	c.string(2, &m.Grouping)
	c.bool(3, &m.DriverSaid)
}

// HandoverContainer is a container.
type HandoverContainer struct {
	ID, Bundle, Leader string
	Options            *HandoverOptions
	Group              string
	SharedPid          bool
	// Restore is what it comes from, as long as it is not started.
	Restore           *HandoverRestore
	Made              bool // the engine has it
	Paused            bool
	OOMKills, OOMTold uint64
	Cgroup            *HandoverCgroup
	Processes         []*HandoverProcess // the init first
	Slot              uint32             // in the memory of a keeper, where the shim before was killed
}

func (m *HandoverContainer) fields(c *codec) {
	c.string(1, &m.ID)
	c.string(2, &m.Bundle)
	c.string(3, &m.Leader)
	message(c, 4, &m.Options)
	c.string(5, &m.Group)
	c.bool(6, &m.SharedPid)
	message(c, 7, &m.Restore)
	c.bool(8, &m.Made)
	c.bool(9, &m.Paused)
	c.uint64(10, &m.OOMKills)
	c.uint64(11, &m.OOMTold)
	message(c, 12, &m.Cgroup)
	messages(c, 13, &m.Processes)
}

// HandoverRestore is a checkpoint that a container comes from.
type HandoverRestore struct{ Image, Parent, Work string }

func (m *HandoverRestore) fields(c *codec) {
	c.string(1, &m.Image)
	c.string(2, &m.Parent)
	c.string(3, &m.Work)
}

// HandoverCgroup is a container's cgroup, and what it has said last.
type HandoverCgroup struct {
	Path   string
	Kills  uint64
	Closed bool
	Last   *Any // metrics
}

func (m *HandoverCgroup) fields(c *codec) {
	c.string(1, &m.Path)
	c.uint64(2, &m.Kills)
	c.bool(3, &m.Closed)
	message(c, 4, &m.Last)
}

// HandoverProcess is a container's init, or an exec.
type HandoverProcess struct {
	ExecID                string
	Stdin, Stdout, Stderr string
	Terminal              bool
	Spec                  []byte
	State                 uint32
	Pid                   uint32
	Child                 bool // there is, or was, a process
	Ended                 bool
	Status                uint32
	At                    *Timestamp
	Failed, Settled       bool
	IO                    *HandoverIO
	// By what an exec is served that has not executed its program: see engine.Held. 0 is not at
	// all.
	HeldSocket uint32
	HeldName   string
}

func (m *HandoverProcess) fields(c *codec) {
	c.string(1, &m.ExecID)
	c.string(2, &m.Stdin)
	c.string(3, &m.Stdout)
	c.string(4, &m.Stderr)
	c.bool(5, &m.Terminal)
	c.bytes(6, &m.Spec)
	c.uint32(7, &m.State)
	c.uint32(8, &m.Pid)
	c.bool(9, &m.Child)
	c.bool(10, &m.Ended)
	c.uint32(11, &m.Status)
	message(c, 12, &m.At)
	c.bool(13, &m.Failed)
	c.bool(14, &m.Settled)
	message(c, 15, &m.IO)
	c.uint32(16, &m.HeldSocket)
	c.string(17, &m.HeldName)
}

// HandoverIO are the streams of a process.
type HandoverIO struct {
	Started, Closed bool
	// The ends that the process gets, until it is started.
	ChildIn, ChildOut, ChildErr uint32
	In, InKeep, InPipe, Console uint32
	Outputs                     []*HandoverOutput
	Pipes                       []*HandoverPipe
	Logger                      *HandoverLogger
	// What goes from the input to the process, and from its terminal to the first output.
	InCopy, ConsoleCopy *HandoverCopy
	// What is to be led to streams over the socket.
	Links []*HandoverLink
	Slot  uint32 // in the memory of a keeper, where the shim before was killed
}

func (m *HandoverIO) fields(c *codec) {
	c.bool(1, &m.Started)
	c.bool(2, &m.Closed)
	c.uint32(3, &m.ChildIn)
	c.uint32(4, &m.ChildOut)
	c.uint32(5, &m.ChildErr)
	c.uint32(6, &m.In)
	c.uint32(7, &m.InKeep)
	c.uint32(8, &m.InPipe)
	c.uint32(9, &m.Console)
	messages(c, 10, &m.Outputs)
	messages(c, 11, &m.Pipes)
	message(c, 12, &m.Logger)
	message(c, 13, &m.InCopy)
	message(c, 14, &m.ConsoleCopy)
	messages(c, 15, &m.Links)
}

// HandoverLink is the end of a pipe that a stream over the socket, by its id, is to have.
type HandoverLink struct {
	ID    string
	Pipe  uint32
	Input bool
}

func (m *HandoverLink) fields(c *codec) {
	c.string(1, &m.ID)
	c.uint32(2, &m.Pipe)
	c.bool(3, &m.Input)
}

// HandoverOutput is where output goes.
type HandoverOutput struct {
	File, Keep uint32
	Stage      *HandoverStage
}

func (m *HandoverOutput) fields(c *codec) {
	c.uint32(1, &m.File)
	c.uint32(2, &m.Keep)
	message(c, 3, &m.Stage)
}

// HandoverStage is the pipe that output goes through to a file, and the slot in the memory of a
// keeper from which it is written. It is empty but where the shim before was killed.
type HandoverStage struct{ In, Out, Slot uint32 }

func (m *HandoverStage) fields(c *codec) {
	c.uint32(1, &m.In)
	c.uint32(2, &m.Out)
	c.uint32(3, &m.Slot)
}

// HandoverPipe is a pipe from the process, and which of the outputs it leads to.
type HandoverPipe struct {
	Read, Output uint32
	Copy         *HandoverCopy
}

func (m *HandoverPipe) fields(c *codec) {
	c.uint32(1, &m.Read)
	c.uint32(2, &m.Output)
	message(c, 3, &m.Copy)
}

// HandoverCopy is a copy under way, none where it has ended: Rest has been read and is still to be
// written.
type HandoverCopy struct{ Rest []byte }

func (m *HandoverCopy) fields(c *codec) { c.bytes(1, &m.Rest) }

// HandoverLogger is a logging program; its pid is 0 when it has ended.
type HandoverLogger struct{ Pid uint32 }

func (m *HandoverLogger) fields(c *codec) {
	c.uint32(1, &m.Pid)
}

// HandoverBox is a sandbox of the sandbox service.
type HandoverBox struct {
	ID, Bundle string
	Options    *HandoverOptions
	Pid        uint32
	Made, Down bool
	Started    *Timestamp // none where it has not been
	Ended      bool
	Status     uint32
	At         *Timestamp
	Cgroup     *HandoverCgroup
	Slot       uint32 // in the memory of a keeper, where the shim before was killed
}

func (m *HandoverBox) fields(c *codec) {
	c.string(1, &m.ID)
	c.string(2, &m.Bundle)
	message(c, 3, &m.Options)
	c.uint32(4, &m.Pid)
	c.bool(5, &m.Made)
	c.bool(6, &m.Down)
	message(c, 7, &m.Started)
	c.bool(8, &m.Ended)
	c.uint32(9, &m.Status)
	message(c, 10, &m.At)
	message(c, 11, &m.Cgroup)
}

// UpgradeRequest asks a shim to take another program, at a path.
type UpgradeRequest struct{ Program string }

func (m *UpgradeRequest) fields(c *codec) { c.string(1, &m.Program) }

// UpgradeResponse is the answer of the program that serves from then on.
type UpgradeResponse struct{ From, To string }

func (m *UpgradeResponse) fields(c *codec) {
	c.string(1, &m.From)
	c.string(2, &m.To)
}
