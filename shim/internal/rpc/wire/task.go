package wire

// Messages of containerd.task.v2.Task and containerd.task.v3.Task, which are the same.

// TaskStatus is containerd.v1.types.Status.
type TaskStatus int32

// The states of a task or exec.
const (
	StatusUnknown TaskStatus = iota
	StatusCreated
	StatusRunning
	StatusStopped
	StatusPaused
	StatusPausing
)

type CreateTaskRequest struct {
	ID               string
	Bundle           string
	Rootfs           []*Mount
	Terminal         bool
	Stdin            string
	Stdout           string
	Stderr           string
	Checkpoint       string
	ParentCheckpoint string
	Options          *Any
}

func (m *CreateTaskRequest) fields(c *codec) {
	c.string(1, &m.ID)
	c.string(2, &m.Bundle)
	messages(c, 3, &m.Rootfs)
	c.bool(4, &m.Terminal)
	c.string(5, &m.Stdin)
	c.string(6, &m.Stdout)
	c.string(7, &m.Stderr)
	c.string(8, &m.Checkpoint)
	c.string(9, &m.ParentCheckpoint)
	message(c, 10, &m.Options)
}

type CreateTaskResponse struct {
	Pid uint32
}

func (m *CreateTaskResponse) fields(c *codec) {
	c.uint32(1, &m.Pid)
}

type DeleteRequest struct {
	ID     string
	ExecID string
}

func (m *DeleteRequest) fields(c *codec) {
	c.string(1, &m.ID)
	c.string(2, &m.ExecID)
}

type DeleteResponse struct {
	Pid        uint32
	ExitStatus uint32
	ExitedAt   *Timestamp
}

func (m *DeleteResponse) fields(c *codec) {
	c.uint32(1, &m.Pid)
	c.uint32(2, &m.ExitStatus)
	message(c, 3, &m.ExitedAt)
}

type ExecProcessRequest struct {
	ID       string
	ExecID   string
	Terminal bool
	Stdin    string
	Stdout   string
	Stderr   string
	Spec     *Any
}

func (m *ExecProcessRequest) fields(c *codec) {
	c.string(1, &m.ID)
	c.string(2, &m.ExecID)
	c.bool(3, &m.Terminal)
	c.string(4, &m.Stdin)
	c.string(5, &m.Stdout)
	c.string(6, &m.Stderr)
	message(c, 7, &m.Spec)
}

type ResizePtyRequest struct {
	ID     string
	ExecID string
	Width  uint32
	Height uint32
}

func (m *ResizePtyRequest) fields(c *codec) {
	c.string(1, &m.ID)
	c.string(2, &m.ExecID)
	c.uint32(3, &m.Width)
	c.uint32(4, &m.Height)
}

type StateRequest struct {
	ID     string
	ExecID string
}

func (m *StateRequest) fields(c *codec) {
	c.string(1, &m.ID)
	c.string(2, &m.ExecID)
}

type StateResponse struct {
	ID         string
	Bundle     string
	Pid        uint32
	Status     TaskStatus
	Stdin      string
	Stdout     string
	Stderr     string
	Terminal   bool
	ExitStatus uint32
	ExitedAt   *Timestamp
	ExecID     string
}

func (m *StateResponse) fields(c *codec) {
	c.string(1, &m.ID)
	c.string(2, &m.Bundle)
	c.uint32(3, &m.Pid)
	c.int32(4, (*int32)(&m.Status))
	c.string(5, &m.Stdin)
	c.string(6, &m.Stdout)
	c.string(7, &m.Stderr)
	c.bool(8, &m.Terminal)
	c.uint32(9, &m.ExitStatus)
	message(c, 10, &m.ExitedAt)
	c.string(11, &m.ExecID)
}

type KillRequest struct {
	ID     string
	ExecID string
	Signal uint32
	All    bool
}

func (m *KillRequest) fields(c *codec) {
	c.string(1, &m.ID)
	c.string(2, &m.ExecID)
	c.uint32(3, &m.Signal)
	c.bool(4, &m.All)
}

type CloseIORequest struct {
	ID     string
	ExecID string
	Stdin  bool
}

func (m *CloseIORequest) fields(c *codec) {
	c.string(1, &m.ID)
	c.string(2, &m.ExecID)
	c.bool(3, &m.Stdin)
}

type PidsRequest struct {
	ID string
}

func (m *PidsRequest) fields(c *codec) {
	c.string(1, &m.ID)
}

type PidsResponse struct {
	Processes []*ProcessInfo
}

func (m *PidsResponse) fields(c *codec) {
	messages(c, 1, &m.Processes)
}

type CheckpointTaskRequest struct {
	ID      string
	Path    string
	Options *Any
}

func (m *CheckpointTaskRequest) fields(c *codec) {
	c.string(1, &m.ID)
	c.string(2, &m.Path)
	message(c, 3, &m.Options)
}

type UpdateTaskRequest struct {
	ID          string
	Resources   *Any
	Annotations map[string]string
}

func (m *UpdateTaskRequest) fields(c *codec) {
	c.string(1, &m.ID)
	message(c, 2, &m.Resources)
	c.stringMap(3, &m.Annotations)
}

type StartRequest struct {
	ID     string
	ExecID string
}

func (m *StartRequest) fields(c *codec) {
	c.string(1, &m.ID)
	c.string(2, &m.ExecID)
}

type StartResponse struct {
	Pid uint32
}

func (m *StartResponse) fields(c *codec) {
	c.uint32(1, &m.Pid)
}

type WaitRequest struct {
	ID     string
	ExecID string
}

func (m *WaitRequest) fields(c *codec) {
	c.string(1, &m.ID)
	c.string(2, &m.ExecID)
}

type WaitResponse struct {
	ExitStatus uint32
	ExitedAt   *Timestamp
}

func (m *WaitResponse) fields(c *codec) {
	c.uint32(1, &m.ExitStatus)
	message(c, 2, &m.ExitedAt)
}

type StatsRequest struct {
	ID string
}

func (m *StatsRequest) fields(c *codec) {
	c.string(1, &m.ID)
}

type StatsResponse struct {
	Stats *Any
}

func (m *StatsResponse) fields(c *codec) {
	message(c, 1, &m.Stats)
}

type ConnectRequest struct {
	ID string
}

func (m *ConnectRequest) fields(c *codec) {
	c.string(1, &m.ID)
}

type ConnectResponse struct {
	ShimPid uint32
	TaskPid uint32
	Version string
}

func (m *ConnectResponse) fields(c *codec) {
	c.uint32(1, &m.ShimPid)
	c.uint32(2, &m.TaskPid)
	c.string(3, &m.Version)
}

type ShutdownRequest struct {
	ID  string
	Now bool
}

func (m *ShutdownRequest) fields(c *codec) {
	c.string(1, &m.ID)
	c.bool(2, &m.Now)
}

type PauseRequest struct {
	ID string
}

func (m *PauseRequest) fields(c *codec) {
	c.string(1, &m.ID)
}

type ResumeRequest struct {
	ID string
}

func (m *ResumeRequest) fields(c *codec) {
	c.string(1, &m.ID)
}

type Mount struct {
	Type    string
	Source  string
	Target  string
	Options []string
}

func (m *Mount) fields(c *codec) {
	c.string(1, &m.Type)
	c.string(2, &m.Source)
	c.string(3, &m.Target)
	c.strings(4, &m.Options)
}

type ProcessInfo struct {
	Pid  uint32
	Info *Any
}

func (m *ProcessInfo) fields(c *codec) {
	c.uint32(1, &m.Pid)
	message(c, 2, &m.Info)
}
