package criu

// A Task is what criu is asked to do: criu_req_type of rpc.proto.
type Task int

const (
	Dump         Task = 1
	Restore      Task = 2
	PreDump      Task = 4
	notification Task = 6
	checkFeature Task = 9
	version      Task = 10
)

func (t Task) String() string {
	switch t {
	case Dump:
		return "dump"
	case Restore:
		return "restore"
	case PreDump:
		return "pre-dump"
	case notification:
		return "notify"
	case checkFeature:
		return "feature check"
	case version:
		return "version"
	}
	return "unknown"
}

// CgroupMode says how criu treats cgroups: criu_cg_mode.
type CgroupMode int

const (
	CgroupIgnore CgroupMode = 0
	CgroupSoft   CgroupMode = 3
	CgroupFull   CgroupMode = 4
	CgroupStrict CgroupMode = 5
)

// NetworkLock says how criu keeps packets away from connections meanwhile:
// criu_network_lock_method. The zero value leaves it to criu, which takes iptables.
type NetworkLock int

const (
	LockByNFTables NetworkLock = 2
	LockNothing    NetworkLock = 3
)

// Options are what criu is told along with a task: criu_opts. Descriptors are
// numbers in criu's own table, as Session.Pass gives them.
type Options struct {
	Pid             int
	images          int // descriptors of ours: criu goes through our /proc/PID/fd
	work            int // 0 for images
	LogFile         string
	Root            string
	ParentImage     string // relative to the images
	LeaveRunning    bool
	ExternalSockets bool
	TCPEstablished  bool
	TCPClose        bool
	TCPSkipInFlight bool
	LinkRemap       bool
	ShellJob        bool
	FileLocks       bool
	AutoDedup       bool
	LazyPages       bool
	TrackMemory     bool
	Sibling         bool // the restored process is a child of criu's parent
	PageServer      *PageServer
	EmptyNamespaces uint64 // CLONE_NEW… flags
	CgroupMode      CgroupMode
	CgroupRoots     []CgroupRoot
	FreezeCgroup    string
	External        []string
	Mounts          []Mount
	Inherit         []Inherit
	Join            []Join
	StatusFD        int // 0 for none
	LSMProfile      string
	LSMMountContext string
	NetworkLock     NetworkLock
}

// A PageServer receives memory pages instead of the image files.
type PageServer struct {
	Address string
	Port    int
}

// A CgroupRoot is where a controller's cgroups of the images go.
type CgroupRoot struct{ Controller, Path string }

// A Mount comes from outside of the container. In a dump Key is its mount point
// and Value the name it gets, in a restore Key is the name and Value its source.
type Mount struct{ Key, Value string }

// Inherit is a file of the images that a descriptor of ours stands for.
type Inherit struct {
	Key string
	FD  int
}

// A Join is a namespace that the restored processes enter.
type Join struct{ Type, File string }

// logEverything is criu's level of debug messages. Without them its log does not
// say what it was doing when something failed.
const logEverything = 4

func (o *Options) encode(m *message) {
	m.requiredInt(1, int64(o.images))
	m.int(2, int64(o.Pid))
	m.bool(3, o.LeaveRunning)
	m.bool(4, o.ExternalSockets)
	m.bool(5, o.TCPEstablished)
	m.bool(7, o.ShellJob)
	m.bool(8, o.FileLocks)
	m.int(9, logEverything)
	m.string(10, o.LogFile)
	if p := o.PageServer; p != nil {
		m.inner(11, func(m *message) {
			m.string(1, p.Address)
			m.int(2, int64(p.Port))
		})
	}
	m.bool(12, true) // notify us
	m.string(13, o.Root)
	m.string(14, o.ParentImage)
	m.bool(15, o.TrackMemory)
	m.bool(16, o.AutoDedup)
	m.int(17, int64(o.work))
	m.bool(18, o.LinkRemap)
	for _, e := range o.Mounts {
		m.inner(23, func(m *message) {
			m.requiredString(1, e.Key)
			m.requiredString(2, e.Value)
		})
	}
	m.bool(24, o.CgroupMode != CgroupIgnore)
	for _, r := range o.CgroupRoots {
		m.inner(25, func(m *message) {
			m.string(1, r.Controller)
			m.requiredString(2, r.Path)
		})
	}
	m.bool(26, o.Sibling)
	for _, i := range o.Inherit {
		m.inner(27, func(m *message) {
			m.requiredString(1, i.Key)
			m.requiredInt(2, int64(i.FD))
		})
	}
	m.requiredInt(34, int64(o.CgroupMode))
	for _, e := range o.External {
		m.requiredString(37, e)
	}
	m.int(38, int64(o.EmptyNamespaces))
	for _, j := range o.Join {
		m.inner(39, func(m *message) {
			m.requiredString(1, j.Type)
			m.requiredString(2, j.File)
		})
	}
	m.string(44, o.FreezeCgroup)
	m.bool(46, o.TCPSkipInFlight)
	m.bool(48, o.LazyPages)
	m.int(49, int64(o.StatusFD))
	m.bool(50, true) // a terminal without its master is handed to us
	m.bool(52, o.TCPClose)
	m.string(53, o.LSMProfile)
	m.string(63, o.LSMMountContext)
	m.int(64, int64(o.NetworkLock))
}

// request encodes criu_req.
func request(t Task, o *Options) []byte {
	var m message
	m.requiredInt(1, int64(t))
	if o != nil {
		m.inner(2, o.encode)
	}
	// The next request comes over the same socket, to the same process.
	m.bool(4, t == version || t == checkFeature)
	if t == checkFeature {
		m.inner(5, func(m *message) {
			m.bool(1, true)
			m.bool(2, true)
		})
	}
	return m.data
}

// answer encodes what a notification is answered with.
func answer(success bool) []byte {
	var m message
	m.requiredInt(1, int64(notification))
	if success {
		m.requiredInt(3, 1)
	} else {
		m.requiredInt(3, 0)
	}
	return m.data
}
