package wire

// Messages of containerd.runtime.sandbox.v1.Sandbox.

type CreateSandboxRequest struct {
	SandboxID   string
	BundlePath  string
	Rootfs      []*Mount
	Options     *Any
	NetNSPath   string
	Annotations map[string]string
}

func (m *CreateSandboxRequest) fields(c *codec) {
	c.string(1, &m.SandboxID)
	c.string(2, &m.BundlePath)
	messages(c, 3, &m.Rootfs)
	message(c, 4, &m.Options)
	c.string(5, &m.NetNSPath)
	c.stringMap(6, &m.Annotations)
}

type CreateSandboxResponse struct{}

func (*CreateSandboxResponse) fields(*codec) {}

type StartSandboxRequest struct {
	SandboxID string
}

func (m *StartSandboxRequest) fields(c *codec) {
	c.string(1, &m.SandboxID)
}

type StartSandboxResponse struct {
	Pid       uint32
	CreatedAt *Timestamp
	Spec      *Any
}

func (m *StartSandboxResponse) fields(c *codec) {
	c.uint32(1, &m.Pid)
	message(c, 2, &m.CreatedAt)
	message(c, 3, &m.Spec)
}

type PlatformRequest struct {
	SandboxID string
}

func (m *PlatformRequest) fields(c *codec) {
	c.string(1, &m.SandboxID)
}

type PlatformResponse struct {
	Platform *Platform
}

func (m *PlatformResponse) fields(c *codec) {
	message(c, 1, &m.Platform)
}

type StopSandboxRequest struct {
	SandboxID   string
	TimeoutSecs uint32
}

func (m *StopSandboxRequest) fields(c *codec) {
	c.string(1, &m.SandboxID)
	c.uint32(2, &m.TimeoutSecs)
}

type StopSandboxResponse struct{}

func (*StopSandboxResponse) fields(*codec) {}

type WaitSandboxRequest struct {
	SandboxID string
}

func (m *WaitSandboxRequest) fields(c *codec) {
	c.string(1, &m.SandboxID)
}

type WaitSandboxResponse struct {
	ExitStatus uint32
	ExitedAt   *Timestamp
}

func (m *WaitSandboxResponse) fields(c *codec) {
	c.uint32(1, &m.ExitStatus)
	message(c, 2, &m.ExitedAt)
}

type SandboxStatusRequest struct {
	SandboxID string
	Verbose   bool
}

func (m *SandboxStatusRequest) fields(c *codec) {
	c.string(1, &m.SandboxID)
	c.bool(2, &m.Verbose)
}

type SandboxStatusResponse struct {
	SandboxID string
	Pid       uint32
	State     string
	Info      map[string]string
	CreatedAt *Timestamp
	ExitedAt  *Timestamp
	Extra     *Any
}

func (m *SandboxStatusResponse) fields(c *codec) {
	c.string(1, &m.SandboxID)
	c.uint32(2, &m.Pid)
	c.string(3, &m.State)
	c.stringMap(4, &m.Info)
	message(c, 5, &m.CreatedAt)
	message(c, 6, &m.ExitedAt)
	message(c, 7, &m.Extra)
}

type PingRequest struct {
	SandboxID string
}

func (m *PingRequest) fields(c *codec) {
	c.string(1, &m.SandboxID)
}

type PingResponse struct{}

func (*PingResponse) fields(*codec) {}

type ShutdownSandboxRequest struct {
	SandboxID string
}

func (m *ShutdownSandboxRequest) fields(c *codec) {
	c.string(1, &m.SandboxID)
}

type ShutdownSandboxResponse struct{}

func (*ShutdownSandboxResponse) fields(*codec) {}

type SandboxMetricsRequest struct {
	SandboxID string
}

func (m *SandboxMetricsRequest) fields(c *codec) {
	c.string(1, &m.SandboxID)
}

type SandboxMetricsResponse struct {
	Metrics *Metric
}

func (m *SandboxMetricsResponse) fields(c *codec) {
	message(c, 1, &m.Metrics)
}

type Platform struct {
	OS           string
	Architecture string
	Variant      string
	OSVersion    string
	OSFeatures   []string
}

func (m *Platform) fields(c *codec) {
	c.string(1, &m.OS)
	c.string(2, &m.Architecture)
	c.string(3, &m.Variant)
	c.string(4, &m.OSVersion)
	c.strings(5, &m.OSFeatures)
}

type Metric struct {
	Timestamp *Timestamp
	ID        string
	Data      *Any
}

func (m *Metric) fields(c *codec) {
	message(c, 1, &m.Timestamp)
	c.string(2, &m.ID)
	message(c, 3, &m.Data)
}
