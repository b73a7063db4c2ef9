package box

import (
	"cmp"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/engine/spec"
)

// Caller is who calls, and from where.
type Caller struct {
	UID, GID int
	Dir      string // without links in it
	Environ  []string
}

// Here looks at this process.
func Here() (*Caller, error) {
	dir, err := Abs(".")
	if err != nil {
		return nil, err
	}
	return &Caller{UID: os.Geteuid(), GID: os.Getegid(), Dir: dir, Environ: os.Environ()}, nil
}

// Abs makes a path absolute by the real path of the current directory: a link that leads
// to it, in a /tmp say, is not in the box.
func Abs(name string) (string, error) {
	if filepath.IsAbs(name) {
		return filepath.Clean(name), nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	return filepath.Join(realPath(dir), name), nil
}

// capabilities are what root keeps in a box: enough to install packages and to
// serve a low port, nothing that reaches the machine.
var capabilities = []string{
	"CAP_AUDIT_WRITE", "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_NET_BIND_SERVICE",
	"CAP_SETFCAP", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID", "CAP_SYS_CHROOT",
}

// Capabilities are those that the box's root keeps.
func (o *Options) Capabilities() []string {
	kept := slices.DeleteFunc(slices.Clone(capabilities), func(name string) bool {
		return slices.Contains(o.CapDrop, name) || slices.Contains(o.CapDrop, allCapabilities)
	})
	for _, name := range o.CapAdd {
		if !slices.Contains(kept, name) {
			kept = append(kept, name)
		}
	}
	slices.Sort(kept)
	return kept
}

const allCapabilities = "CAP_ALL"

// Spec makes the configuration of a box.
func (o *Options) Spec(c *Caller) (*specs.Spec, error) {
	user, home, err := o.user(c)
	if err != nil {
		return nil, err
	}
	kept := o.Capabilities()
	s := &specs.Spec{
		Version: specs.Version, Hostname: o.Hostname,
		Root: &specs.Root{Path: cmp.Or(o.Rootfs, "/")},
		Process: &specs.Process{
			Args: o.Command, Terminal: o.Terminal, Env: o.env(c, user, home), Cwd: o.workdir(c),
			User: user, NoNewPrivileges: true, Rlimits: o.Rlimits,
			Capabilities: &specs.LinuxCapabilities{Bounding: kept, Effective: kept, Permitted: kept},
		},
		Annotations: map[string]string{spec.RootWritesAnnotation: "discard"},
		Linux: &specs.Linux{
			Namespaces: []specs.LinuxNamespace{
				{Type: specs.PIDNamespace}, {Type: specs.IPCNamespace}, {Type: specs.UTSNamespace},
				{Type: specs.MountNamespace}, {Type: specs.CgroupNamespace},
			},
			Seccomp: o.Seccomp,
			MaskedPaths: []string{
				"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug",
				"/proc/scsi", "/proc/timer_list", "/proc/timer_stats", "/sys/devices/virtual/powercap", "/sys/firmware",
			},
			ReadonlyPaths: []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"},
			Resources:     o.Limits(),
		},
	}
	if !o.HostNet {
		s.Linux.Namespaces = append(s.Linux.Namespaces, specs.LinuxNamespace{Type: specs.NetworkNamespace})
	}
	if c.UID != 0 {
		// Ordinary users can be any user in a user namespace, as one id: nothing
		// that is another's becomes the user's.
		s.Linux.Namespaces = append(s.Linux.Namespaces, specs.LinuxNamespace{Type: specs.UserNamespace})
		s.Linux.UIDMappings = []specs.LinuxIDMapping{{ContainerID: user.UID, HostID: uint32(c.UID), Size: 1}}
		s.Linux.GIDMappings = []specs.LinuxIDMapping{{ContainerID: user.GID, HostID: uint32(c.GID), Size: 1}}
		s.Process.User.AdditionalGids = nil // the kernel keeps the caller's (user_namespaces(7))
	} else {
		s.Linux.Resources.Devices = []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}}
		for _, d := range o.Devices {
			s.Linux.Resources.Devices = append(s.Linux.Resources.Devices, d.rule())
		}
	}
	if o.Nest {
		// The kernel lets no user namespace mount a new /proc where a part of the one that is
		// there is covered (mount_too_revealing in fs/namespace.c). All of it is the user's
		// to see and to change as it is outside.
		s.Linux.MaskedPaths = slices.DeleteFunc(s.Linux.MaskedPaths, inProc)
		s.Linux.ReadonlyPaths = slices.DeleteFunc(s.Linux.ReadonlyPaths, inProc)
	}
	hidden, masked := o.hide(c)
	o.mounted = o.mounts(c, hidden...)
	s.Mounts = o.mounted
	s.Linux.MaskedPaths = append(s.Linux.MaskedPaths, masked...)
	if o.dir(c.Dir) == inOverlay {
		s.Annotations[spec.RootReadonlyAnnotation] = c.Dir
	}
	return s, nil
}

func inProc(name string) bool { return within(name, "/proc") }

// workdir is where the command begins.
func (o *Options) workdir(c *Caller) string {
	switch {
	case o.Workdir != "":
		return filepath.Join("/", o.Workdir)
	case o.Image != nil:
		return filepath.Join("/", o.Image.Dir)
	case o.Rootfs != "":
		return "/"
	}
	return c.Dir
}

// passed are the variables that go into every box. Others may be secrets, and are
// asked for by name.
var passed = []string{"LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TERM", "TZ", "NO_COLOR", "COLORTERM"}

// passedToImages are those of them that say nothing of the machine's files, as locales do.
var passedToImages = []string{"TERM", "NO_COLOR", "COLORTERM"}

func (o *Options) env(c *Caller, user specs.User, home string) []string {
	const usual = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	path := usual
	if value, ok := lookUp(c.Environ, "PATH"); ok && o.Rootfs == "" {
		path = value
	}
	env := []string{"PATH=" + path, "HOME=" + home, "container=berth"}
	names, set := passed, o.Env
	if o.Image != nil {
		names, set = passedToImages, slices.Concat(o.Image.own(), o.Env)
	}
	for _, name := range names {
		if value, ok := lookUp(c.Environ, name); ok {
			env = append(env, name+"="+value)
		}
	}
	for _, entry := range set {
		name, _, given := strings.Cut(entry, "=")
		if !given {
			value, ok := lookUp(c.Environ, name)
			if !ok {
				continue
			}
			entry = name + "=" + value
		}
		env = slices.DeleteFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
		env = append(env, entry)
	}
	return env
}

// own is the image's environment: it passes nothing on by name, that is the caller's to do.
func (i *Image) own() []string {
	return slices.DeleteFunc(slices.Clone(i.Env), func(entry string) bool { return strings.IndexByte(entry, '=') < 1 })
}

func lookUp(environ []string, name string) (string, bool) {
	for _, entry := range environ {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// Limits are the limits as the OCI runtime spec has them.
func (o *Options) Limits() *specs.LinuxResources {
	r := &specs.LinuxResources{}
	if o.Memory != 0 {
		r.Memory = &specs.LinuxMemory{Limit: &o.Memory}
		if swapping() {
			// What exceeds the limit is not to go to the swap instead.
			r.Memory.Swap = &o.Memory
		}
	}
	if o.CPUs != 0 {
		period := uint64(100_000)
		quota := int64(math.Round(o.CPUs * float64(period)))
		if quota < 1000 { // the least that the kernel takes
			quota, period = int64(math.Round(o.CPUs*1e6)), 1_000_000
		}
		r.CPU = &specs.LinuxCPU{Quota: &quota, Period: &period}
	}
	if o.CPUSet != "" {
		if r.CPU == nil {
			r.CPU = &specs.LinuxCPU{}
		}
		r.CPU.Cpus = o.CPUSet
	}
	if o.Pids != 0 {
		r.Pids = &specs.LinuxPids{Limit: &o.Pids}
	}
	for _, t := range o.IO {
		if r.BlockIO == nil {
			r.BlockIO = &specs.LinuxBlockIO{}
		}
		add := func(list *[]specs.LinuxThrottleDevice, word string) {
			if rate, ok := t.Rates[word]; ok {
				d := specs.LinuxThrottleDevice{Rate: rate}
				d.Major, d.Minor = t.Major, t.Minor
				*list = append(*list, d)
			}
		}
		add(&r.BlockIO.ThrottleReadBpsDevice, "rbps")
		add(&r.BlockIO.ThrottleWriteBpsDevice, "wbps")
		add(&r.BlockIO.ThrottleReadIOPSDevice, "riops")
		add(&r.BlockIO.ThrottleWriteIOPSDevice, "wiops")
	}
	return r
}

// swapping reports whether this machine has swap space: its table has a heading
// and a line for each.
func swapping() bool {
	text, err := os.ReadFile("/proc/swaps")
	return err == nil && strings.Count(string(text), "\n") > 1
}
