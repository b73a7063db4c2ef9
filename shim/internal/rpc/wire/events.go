package wire

// Event is a message that containerd publishes under a topic.
type Event interface {
	Message
	// Topic is where it is published; TypeURL names it inside an Any.
	Topic() string
	TypeURL() string
}

type TaskCreate struct {
	ContainerID string
	Bundle      string
	Rootfs      []*Mount
	IO          *TaskIO
	Checkpoint  string
	Pid         uint32
}

func (m *TaskCreate) fields(c *codec) {
	c.string(1, &m.ContainerID)
	c.string(2, &m.Bundle)
	messages(c, 3, &m.Rootfs)
	message(c, 4, &m.IO)
	c.string(5, &m.Checkpoint)
	c.uint32(6, &m.Pid)
}

type TaskStart struct {
	ContainerID string
	Pid         uint32
}

func (m *TaskStart) fields(c *codec) {
	c.string(1, &m.ContainerID)
	c.uint32(2, &m.Pid)
}

type TaskDelete struct {
	ContainerID string
	Pid         uint32
	ExitStatus  uint32
	ExitedAt    *Timestamp
	ID          string
}

func (m *TaskDelete) fields(c *codec) {
	c.string(1, &m.ContainerID)
	c.uint32(2, &m.Pid)
	c.uint32(3, &m.ExitStatus)
	message(c, 4, &m.ExitedAt)
	c.string(5, &m.ID)
}

type TaskIO struct {
	Stdin    string
	Stdout   string
	Stderr   string
	Terminal bool
}

func (m *TaskIO) fields(c *codec) {
	c.string(1, &m.Stdin)
	c.string(2, &m.Stdout)
	c.string(3, &m.Stderr)
	c.bool(4, &m.Terminal)
}

type TaskExit struct {
	ContainerID string
	ID          string
	Pid         uint32
	ExitStatus  uint32
	ExitedAt    *Timestamp
}

func (m *TaskExit) fields(c *codec) {
	c.string(1, &m.ContainerID)
	c.string(2, &m.ID)
	c.uint32(3, &m.Pid)
	c.uint32(4, &m.ExitStatus)
	message(c, 5, &m.ExitedAt)
}

type TaskOOM struct {
	ContainerID string
}

func (m *TaskOOM) fields(c *codec) {
	c.string(1, &m.ContainerID)
}

type TaskExecAdded struct {
	ContainerID string
	ExecID      string
}

func (m *TaskExecAdded) fields(c *codec) {
	c.string(1, &m.ContainerID)
	c.string(2, &m.ExecID)
}

type TaskExecStarted struct {
	ContainerID string
	ExecID      string
	Pid         uint32
}

func (m *TaskExecStarted) fields(c *codec) {
	c.string(1, &m.ContainerID)
	c.string(2, &m.ExecID)
	c.uint32(3, &m.Pid)
}

type TaskPaused struct {
	ContainerID string
}

func (m *TaskPaused) fields(c *codec) {
	c.string(1, &m.ContainerID)
}

type TaskResumed struct {
	ContainerID string
}

func (m *TaskResumed) fields(c *codec) {
	c.string(1, &m.ContainerID)
}

type TaskCheckpointed struct {
	ContainerID string
	Checkpoint  string
}

func (m *TaskCheckpointed) fields(c *codec) {
	c.string(1, &m.ContainerID)
	c.string(2, &m.Checkpoint)
}

// Envelope is one event on its way to containerd.
type Envelope struct {
	Timestamp *Timestamp
	Namespace string
	Topic     string
	Event     *Any
}

func (m *Envelope) fields(c *codec) {
	message(c, 1, &m.Timestamp)
	c.string(2, &m.Namespace)
	c.string(3, &m.Topic)
	message(c, 4, &m.Event)
}

type ForwardRequest struct {
	Envelope *Envelope
}

func (m *ForwardRequest) fields(c *codec) {
	message(c, 1, &m.Envelope)
}

func (*TaskCreate) Topic() string   { return "/tasks/create" }
func (*TaskCreate) TypeURL() string { return "containerd.events.TaskCreate" }

func (*TaskStart) Topic() string   { return "/tasks/start" }
func (*TaskStart) TypeURL() string { return "containerd.events.TaskStart" }

func (*TaskExit) Topic() string   { return "/tasks/exit" }
func (*TaskExit) TypeURL() string { return "containerd.events.TaskExit" }

func (*TaskDelete) Topic() string   { return "/tasks/delete" }
func (*TaskDelete) TypeURL() string { return "containerd.events.TaskDelete" }

func (*TaskOOM) Topic() string   { return "/tasks/oom" }
func (*TaskOOM) TypeURL() string { return "containerd.events.TaskOOM" }

func (*TaskExecAdded) Topic() string   { return "/tasks/exec-added" }
func (*TaskExecAdded) TypeURL() string { return "containerd.events.TaskExecAdded" }

func (*TaskExecStarted) Topic() string   { return "/tasks/exec-started" }
func (*TaskExecStarted) TypeURL() string { return "containerd.events.TaskExecStarted" }

func (*TaskPaused) Topic() string   { return "/tasks/paused" }
func (*TaskPaused) TypeURL() string { return "containerd.events.TaskPaused" }

func (*TaskResumed) Topic() string   { return "/tasks/resumed" }
func (*TaskResumed) TypeURL() string { return "containerd.events.TaskResumed" }

func (*TaskCheckpointed) Topic() string   { return "/tasks/checkpointed" }
func (*TaskCheckpointed) TypeURL() string { return "containerd.events.TaskCheckpointed" }
