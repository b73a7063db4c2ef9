package wire

// BootstrapParams is what containerd 2.3 and later write to `start`.
type BootstrapParams struct {
	InstanceID        string
	Namespace         string
	LogLevel          int32 // INFO 0, less is more verbose
	ContainerdVersion string
	TTRPCAddress      string
	GRPCAddress       string
	ContainerdBinary  string
	Extensions        []*Extension
	SocketDir         *string
}

func (m *BootstrapParams) fields(c *codec) {
	c.string(1, &m.InstanceID)
	c.string(2, &m.Namespace)
	c.int32(3, &m.LogLevel)
	c.string(4, &m.ContainerdVersion)
	c.string(5, &m.TTRPCAddress)
	c.string(6, &m.GRPCAddress)
	c.string(7, &m.ContainerdBinary)
	messages(c, 8, &m.Extensions)
	c.optionalString(9, &m.SocketDir)
}

// Extension carries what a version of the bootstrap has no field for.
type Extension struct {
	Value *Any
}

func (m *Extension) fields(c *codec) {
	message(c, 1, &m.Value)
}

// BootstrapResult is the answer of `start` to BootstrapParams.
type BootstrapResult struct {
	Version    int32
	Address    string
	Protocol   string
	Metadata   map[string]string
	Extensions []*Extension
}

func (m *BootstrapResult) fields(c *codec) {
	c.int32(1, &m.Version)
	c.string(2, &m.Address)
	c.string(3, &m.Protocol)
	c.stringMap(5, &m.Metadata)
	messages(c, 6, &m.Extensions)
}

// RuntimeInfo is the answer to -info.
type RuntimeInfo struct {
	Name        string
	Version     *RuntimeVersion
	Options     *Any
	Features    *Any
	Annotations map[string]string
}

func (m *RuntimeInfo) fields(c *codec) {
	c.string(1, &m.Name)
	message(c, 2, &m.Version)
	message(c, 3, &m.Options)
	message(c, 4, &m.Features)
	c.stringMap(5, &m.Annotations)
}

// RuntimeVersion is part of RuntimeInfo.
type RuntimeVersion struct {
	Version  string
	Revision string
}

func (m *RuntimeVersion) fields(c *codec) {
	c.string(1, &m.Version)
	c.string(2, &m.Revision)
}
