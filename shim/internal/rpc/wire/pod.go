package wire

// Messages of runtime.v1, Kubernetes' CRI, of which containerd hands the first
// to the shim as a sandbox's options. Only what a sandbox without a virtual
// machine has a use for is read.

// The modes of a pod's namespaces.
const (
	NamespacePod  = 0
	NamespaceNode = 2
)

type PodSandboxConfig struct {
	Metadata    *PodSandboxMetadata
	Hostname    string
	Annotations map[string]string
	Linux       *LinuxPodSandboxConfig
}

func (m *PodSandboxConfig) fields(c *codec) {
	message(c, 1, &m.Metadata)
	c.string(2, &m.Hostname)
	c.stringMap(7, &m.Annotations)
	message(c, 8, &m.Linux)
}

type PodSandboxMetadata struct {
	Name      string
	UID       string
	Namespace string
	Attempt   uint32
}

func (m *PodSandboxMetadata) fields(c *codec) {
	c.string(1, &m.Name)
	c.string(2, &m.UID)
	c.string(3, &m.Namespace)
	c.uint32(4, &m.Attempt)
}

type LinuxPodSandboxConfig struct {
	CgroupParent    string
	SecurityContext *PodSecurityContext
	Sysctls         map[string]string
}

func (m *LinuxPodSandboxConfig) fields(c *codec) {
	c.string(1, &m.CgroupParent)
	message(c, 2, &m.SecurityContext)
	c.stringMap(3, &m.Sysctls)
}

// PodSecurityContext is LinuxSandboxSecurityContext.
type PodSecurityContext struct {
	Namespaces *PodNamespaces
	SELinux    *PodSELinux
}

func (m *PodSecurityContext) fields(c *codec) {
	message(c, 1, &m.Namespaces)
	message(c, 2, &m.SELinux)
}

// PodNamespaces is NamespaceOption.
type PodNamespaces struct {
	Network int32
	Pid     int32
	IPC     int32
	User    *PodUserNamespace
}

func (m *PodNamespaces) fields(c *codec) {
	c.int32(1, &m.Network)
	c.int32(2, &m.Pid)
	c.int32(3, &m.IPC)
	message(c, 5, &m.User)
}

// PodUserNamespace is UserNamespace.
type PodUserNamespace struct {
	Mode int32
	UIDs []*PodIDMapping
	GIDs []*PodIDMapping
}

func (m *PodUserNamespace) fields(c *codec) {
	c.int32(1, &m.Mode)
	messages(c, 2, &m.UIDs)
	messages(c, 3, &m.GIDs)
}

// PodIDMapping is IDMapping.
type PodIDMapping struct {
	HostID      uint32
	ContainerID uint32
	Length      uint32
}

func (m *PodIDMapping) fields(c *codec) {
	c.uint32(1, &m.HostID)
	c.uint32(2, &m.ContainerID)
	c.uint32(3, &m.Length)
}

// PodSELinux is SELinuxOption.
type PodSELinux struct {
	User  string
	Role  string
	Type  string
	Level string
}

func (m *PodSELinux) fields(c *codec) {
	c.string(1, &m.User)
	c.string(2, &m.Role)
	c.string(3, &m.Type)
	c.string(4, &m.Level)
}
