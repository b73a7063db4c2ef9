package view

// View is one process's view of the world around it.
type View struct {
	Args     []string          `json:"args"`
	Env      []string          `json:"env"`
	Exe      string            `json:"exe"`
	Cwd      string            `json:"cwd"`
	PID      int               `json:"pid"`
	PPID     int               `json:"ppid"`
	SID      int               `json:"sid"`
	Status   map[string]string `json:"status"`
	Mounts   []Mount           `json:"mounts"`
	Limits   map[string]Limit  `json:"limits"`
	NS       map[string]string `json:"ns"`
	Cgroups  []string          `json:"cgroups"`
	UIDMap   []string          `json:"uid_map"`
	GIDMap   []string          `json:"gid_map"`
	Setgroup string            `json:"setgroups"`
	OOMScore string            `json:"oom_score_adj"`
	Hostname string            `json:"hostname"`
	Domain   string            `json:"domainname"`
	Machine  string            `json:"machine"`
	Persona  uint64            `json:"personality"`
	Sched    Sched             `json:"sched"`
	IOPrio   IOPrio            `json:"ioprio"`
	MemPol   string            `json:"mempolicy"`
	CPUs     []int             `json:"cpus"`
	Keyring  string            `json:"keyring"`
	Offsets  []string          `json:"timens_offsets"`
	FDs      map[int]string    `json:"fds"`
	Links    []Link            `json:"links"`
	TTY      *TTY              `json:"tty,omitempty"`
	Files    map[string]File   `json:"files,omitempty"`
	Dirs     map[string][]File `json:"dirs,omitempty"`
}

// Report is all that the tests which compare engines look at.
type Report struct {
	View
	Tree     []File
	Attempts []Attempt
	Controls map[string]int
	Values   map[string]string
	Sockets  []string
}

// Mount is a line of /proc/self/mountinfo.
type Mount struct {
	ID, Parent int
	Device     string
	Root       string
	Target     string
	Options    []string
	Optional   []string // shared:N, master:N, propagate_from:N, unbindable
	Type       string
	Source     string
	Super      []string
}

// Limit is a resource limit; the kernel's infinity is kept as it is, 2^64-1.
type Limit struct{ Soft, Hard uint64 }

// Sched is what sched_getattr(2) says of the process.
type Sched struct {
	Policy            uint32
	Flags             uint64
	Nice              int32
	Priority          uint32
	Runtime, Deadline uint64
	Period            uint64
	UtilMin, UtilMax  uint32
}

// IOPrio is the class and level of ioprio_get(2).
type IOPrio struct{ Class, Level int }

// Link is a network interface.
type Link struct {
	Name      string
	Index     int
	MTU       int
	Up        bool
	Hardware  string
	Addresses []string
}

// TTY is the terminal on standard input.
type TTY struct {
	Rows, Cols uint16
	ONLCR      bool
	Controls   bool // it is the controlling terminal of the process
	Name       string
	UID        uint32
	Mode       uint32
}

// File is what lstat(2) says of a path, with the target of a link; Error names the errno instead.
type File struct {
	Name       string
	Error      string `json:",omitempty"`
	Type       string // file, dir, link, char, block, fifo, socket
	Mode       uint32 // permission bits with setuid, setgid, sticky
	UID, GID   uint32
	Size       int64
	Major      uint32
	Minor      uint32
	Inode      uint64
	Device     uint64
	LinkTarget string `json:",omitempty"`
}

// Attempt is the outcome of one thing the helper tried: an empty errno means that it worked.
type Attempt struct {
	What   string
	Errno  string
	Result string `json:",omitempty"`
}

// Reached is a process that another one may trace, as that one sees it.
type Reached struct {
	PID    int
	Exe    string
	Status map[string]string
}

// HookCall is what a hook saw: its argument words, the state on its standard input, and its
// surroundings.
type HookCall struct {
	Name  string
	Args  []string
	Env   []string
	State string
	View  View
}

// Seized is what a process had when another of the container took it over.
type Seized struct {
	PID     int
	Exe     string
	Status  map[string]string
	Cgroups []string
	FDs     map[string]string
}
