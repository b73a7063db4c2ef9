package wire

// Type URLs of the messages that come as a task's options.
const (
	RuncOptionsURL     = "containerd.runc.v1.Options"
	RuntimeOptionsURL  = "runtimeoptions.v1.Options"
	BerthOptionsURL    = "berth.shim.v1.Options"
	CheckpointURL      = "containerd.runc.v1.CheckpointOptions"
	ProcessDetailsURL  = "containerd.runc.v1.ProcessDetails"
	FeaturesURL        = "types.containerd.io/opencontainers/runtime-spec/1/features/Features"
	MetricsV1URL       = "io.containerd.cgroups.v1.Metrics"
	MetricsV2URL       = "io.containerd.cgroups.v2.Metrics"
	SpecURL            = "types.containerd.io/opencontainers/runtime-spec/1/Spec"
	PodSandboxURL      = "runtime.v1.PodSandboxConfig"
	PodSandboxAlphaURL = "runtime.v1alpha2.PodSandboxConfig"
)

// RuncOptions is containerd.runc.v1.Options.
type RuncOptions struct {
	NoPivotRoot   bool
	NoNewKeyring  bool
	ShimCgroup    string
	IoUID         uint32
	IoGID         uint32
	BinaryName    string
	Root          string
	SystemdCgroup bool
	CriuImagePath string
	CriuWorkPath  string
	// TaskAPIAddress and TaskAPIVersion name a task service that runs somewhere
	// else, in a virtual machine; containerd dials it itself.
	TaskAPIAddress string
	TaskAPIVersion uint32
}

func (m *RuncOptions) fields(c *codec) {
	c.bool(1, &m.NoPivotRoot)
	c.bool(2, &m.NoNewKeyring)
	c.string(3, &m.ShimCgroup)
	c.uint32(4, &m.IoUID)
	c.uint32(5, &m.IoGID)
	c.string(6, &m.BinaryName)
	c.string(7, &m.Root)
	c.bool(9, &m.SystemdCgroup)
	c.string(10, &m.CriuImagePath)
	c.string(11, &m.CriuWorkPath)
	c.string(12, &m.TaskAPIAddress)
	c.uint32(13, &m.TaskAPIVersion)
}

// RuntimeOptions is runtimeoptions.v1.Options, in which containerd's CRI hands
// the options table of any runtime that is not named io.containerd.runc.v2.
type RuntimeOptions struct {
	TypeURL    string
	ConfigPath string
	ConfigBody []byte
}

func (m *RuntimeOptions) fields(c *codec) {
	c.string(1, &m.TypeURL)
	c.string(2, &m.ConfigPath)
	c.bytes(3, &m.ConfigBody)
}

// BerthOptions is berth.shim.v1.Options, this shim's own (see options.proto).
type BerthOptions struct {
	Runc     *RuncOptions
	Grouping string
}

func (m *BerthOptions) fields(c *codec) {
	message(c, 1, &m.Runc)
	c.string(2, &m.Grouping)
}

// CheckpointOptions is containerd.runc.v1.CheckpointOptions.
type CheckpointOptions struct {
	Exit                bool
	OpenTCP             bool
	ExternalUnixSockets bool
	Terminal            bool
	FileLocks           bool
	EmptyNamespaces     []string
	CgroupsMode         string
	ImagePath           string
	WorkPath            string
	ParentPath          string
}

func (m *CheckpointOptions) fields(c *codec) {
	c.bool(1, &m.Exit)
	c.bool(2, &m.OpenTCP)
	c.bool(3, &m.ExternalUnixSockets)
	c.bool(4, &m.Terminal)
	c.bool(5, &m.FileLocks)
	c.strings(6, &m.EmptyNamespaces)
	c.string(7, &m.CgroupsMode)
	c.string(8, &m.ImagePath)
	c.string(9, &m.WorkPath)
	c.string(10, &m.ParentPath)
}

// ProcessDetails is containerd.runc.v1.ProcessDetails.
type ProcessDetails struct {
	ExecID string
}

func (m *ProcessDetails) fields(c *codec) {
	c.string(1, &m.ExecID)
}
