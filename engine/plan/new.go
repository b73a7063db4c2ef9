package plan

import (
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/engine/host"
	"github.com/berth-runtime/berth/engine/spec"
	"github.com/berth-runtime/berth/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Options are what the caller decides and config.json does not.
type Options struct {
	ID     string
	Bundle string // absolute
	// SystemdCgroup lets systemd make the cgroup.
	SystemdCgroup bool
	// PathNamesUnit lets a relative cgroupsPath stand for a unit below Parent, where systemd makes
	// the cgroup by the host's settings and the client has not said so.
	PathNamesUnit bool
	// Parent is the cgroup of containers that name no place of their own, in the notation of
	// paths; "" is the default.
	Parent string
	// Placed is the place of a container that has been made already.
	Placed *Placed
	// NoCgroup leaves the container in the cgroup of its caller.
	NoCgroup     bool
	NoPivot      bool
	NoNewKeyring bool
	PreserveFDs  int
	Init         bool
	// KeepAffinity leaves the container on the caller's CPUs.
	KeepAffinity bool
	// NotifyDir is the host's directory for a socket that the process tells its state to, if any.
	NotifyDir string
	// Listen is how many of the PreserveFDs socket activation has passed.
	Listen int
	// Handed lets the caller have what is written to a root whose writes are discarded.
	Handed bool
	// Home looks a user's home up in the container to be; nil leaves HOME as it is.
	Home func(p *Plan) string
}

// New makes the Plan of one container. The Spec has passed spec.Check. All that
// can't be done on this host is returned at once, as a spec.Errors.
func New(s *specs.Spec, h *host.Host, o Options) (*Plan, error) {
	linux := s.Linux
	if linux == nil {
		linux = &specs.Linux{}
	}
	p := &Plan{
		ID:          o.ID,
		Bundle:      o.Bundle,
		Annotations: s.Annotations,
		Root:        rootOf(s.Root, linux.RootfsPropagation, o.Bundle),
		Namespaces:  namespacesOf(linux.Namespaces),
		IDs:         IDMaps{UID: linux.UIDMappings, GID: linux.GIDMappings},
		Hostname:    s.Hostname,
		Domainname:  s.Domainname,
		TimeOffsets: timeOffsets(linux.TimeOffsets),
		NoPivot:     o.NoPivot,
		Init:        o.Init && slices.ContainsFunc(linux.Namespaces, func(n specs.LinuxNamespace) bool { return n.Type == specs.PIDNamespace && n.Path == "" }),
		Label:       linux.MountLabel,
		Rdt:         linux.IntelRdt,
	}
	if p.Label != "" && !h.SELinux {
		p.Label = ""
		p.Warnings = append(p.Warnings, "/linux/mountLabel: left out, SELinux is not in this kernel, or switched off: labels of files have no effect")
	}
	if s.Hooks != nil {
		p.Hooks = *s.Hooks
	}
	problems := p.planDiscard(s.Annotations)
	problems = append(problems, p.planSupervision()...)
	p.Root.Handed = o.Handed && p.Root.Discard
	userNS := p.Namespace(specs.UserNamespace) != nil
	if !userNS {
		p.Lacks = h.Lacks
		p.IDs = IDMaps{} // there is nothing that they map
	}
	mounts, more := mountsOf(s.Mounts, o.Bundle, p.Root.Path, userNS)
	p.Mounts, problems = mounts, append(problems, more...)
	p.Devices = devicesOf(linux.Devices, p.Mounts, userNS || h.InUserNS)
	p.Links = linksOf(p.Mounts)
	p.Masked = pathsOf(linux.MaskedPaths, "/linux/maskedPaths/")
	p.Readonly = pathsOf(linux.ReadonlyPaths, "/linux/readonlyPaths/")
	p.keepMasksInside()
	p.Sysctls = sysctlsOf(linux.Sysctl)
	p.NetDevs = netDevicesOf(linux.NetDevices)
	p.NetUp = p.Makes(specs.NetworkNamespace)
	const hint = `add {"containerID": 0, "hostID": 100000, "size": 65536} for ids that are free, or take {"type": "user"} out of linux.namespaces`
	switch {
	case !p.Makes(specs.UserNamespace):
	case len(p.IDs.UID) == 0:
		problems = append(problems, spec.Complaint{Pointer: "/linux/uidMappings", Message: "a new user namespace without mappings has no user to run anything as",
			Hint: hint})
	case len(p.IDs.GID) == 0:
		problems = append(problems, spec.Complaint{Pointer: "/linux/gidMappings", Message: "a new user namespace without mappings of groups has no group to run anything as",
			Hint: hint})
	}
	problems = append(problems, p.keepOffTheHost()...)
	if s.Process != nil {
		process, more := NewProcess(s.Process, "/process")
		problems = append(problems, more...)
		process.PreserveFDs, process.KeepAffinity = o.PreserveFDs, o.KeepAffinity
		p.Warnings = append(p.Warnings, process.Restrict(p.Lacks)...)
		problems = append(problems, processExtras(&process, linux)...)
		process.KeepGroups = s.Annotations[keepGroupsAnnotation] == "1"
		landlock, more := landlockOf(s.Annotations, h.Landlock)
		process.Landlock = landlock
		problems = append(problems, more...)
		p.Process = process
		if process.Seccomp != nil {
			for _, u := range process.Seccomp.Filter.Unknown {
				p.Warnings = append(p.Warnings, "/linux/seccomp"+u.Pointer+": no architecture has a system call "+strconv.Quote(u.Name)+"; it is left out")
			}
		}
	}
	if !o.NoNewKeyring {
		// Keys that the caller's session holds are none of the container's business
		// (session-keyring(7)).
		p.Keyring = "_ses." + o.ID
	}
	problems = append(problems, p.planCgroup(linux, h, o)...)
	if len(problems) > 0 {
		return nil, spec.Errors(problems)
	}
	if s.Process == nil && p.Makes(specs.UserNamespace) {
		p.Process.UID, p.Process.GID = p.IDs.Root() // the user that is mapped
	}
	p.addNotify(o.NotifyDir)
	if o.Home != nil && s.Process != nil {
		p.Process.AddHome(func() string { return o.Home(p) })
	}
	p.Process.addListen(o.Listen)
	return p, nil
}

// keepOffTheHost sees to a container that shares the mounts of its caller: nothing is mounted,
// as it would be mounted for the host, and stay there when the container is gone.
func (p *Plan) keepOffTheHost() []spec.Complaint {
	if p.Namespace(specs.MountNamespace) != nil {
		return nil
	}
	const hint = `add {"type": "mount"}`
	var problems []spec.Complaint
	if len(p.Mounts)+len(p.Masked)+len(p.Readonly) > 0 {
		problems = append(problems, spec.Complaint{Pointer: "/linux/namespaces",
			Message: "mounts, maskedPaths and readonlyPaths need a mount namespace; without one they would change the host", Hint: hint})
	}
	kept := p.Devices[:0]
	for _, d := range p.Devices {
		switch {
		case !d.Bind:
			kept = append(kept, d)
		case d.At != "":
			problems = append(problems, spec.Complaint{Pointer: d.At,
				Message: "in a user namespace a device is a mount of the host's, which needs a mount namespace; without one it would change the host", Hint: hint})
		}
	}
	p.Devices = kept
	if filepath.Clean(p.Root.Path) == "/" {
		p.Devices, p.Links = nil, nil // the host's /dev has what there is
	}
	return problems
}

// keepMasksInside makes a bind mount a slave if something is masked or made read-only on it, and a
// shared root would have that happen on the host too: of the host's own /proc, the sysctls would be
// read-only from then on. A mount's own words about propagation stand.
func (p *Plan) keepMasksInside() {
	if p.Root.Propagation&unix.MS_SHARED == 0 {
		return
	}
	for i := range p.Mounts {
		m := &p.Mounts[i]
		on := func(name Path) bool {
			return name.Path == m.Destination || strings.HasPrefix(name.Path, m.Destination+"/")
		}
		if m.Bind && len(m.Propagation) == 0 && (slices.ContainsFunc(p.Masked, on) || slices.ContainsFunc(p.Readonly, on)) {
			m.Propagation = []uintptr{unix.MS_SLAVE | unix.MS_REC}
		}
	}
}

func rootOf(root *specs.Root, propagation, bundle string) Root {
	r := Root{At: "/root", Propagation: unix.MS_SLAVE | unix.MS_REC}
	if root != nil {
		r.Path, r.Readonly = root.Path, root.Readonly
	}
	if !filepath.IsAbs(r.Path) {
		r.Path = filepath.Join(bundle, r.Path)
	}
	if propagation != "" {
		if flag, ok := Propagation(propagation); ok {
			r.Propagation, r.Slave = flag, flag&unix.MS_SLAVE != 0
		}
	}
	return r
}

// pathsOf lists each path once: engines join lists of their own and of their users, and
// a mount on a mount would hide nothing more.
func pathsOf(list []string, at string) []Path {
	paths := make([]Path, 0, len(list))
	seen := make(map[string]bool, len(list))
	for i, name := range list {
		if name = path.Clean("/" + name); !seen[name] {
			seen[name] = true
			paths = append(paths, Path{Path: name, At: at + strconv.Itoa(i)})
		}
	}
	return paths
}

// sysctlsOf lists the kernel parameters in a fixed order. spec.Check has refused
// names that are none.
func sysctlsOf(values map[string]string) []Setting {
	settings := make([]Setting, 0, len(values))
	for name, value := range values {
		if file, ok := spec.SysctlPath(name); ok {
			settings = append(settings, Setting{File: file, Value: value, At: spec.Join("/linux/sysctl", name)})
		}
	}
	slices.SortFunc(settings, func(a, b Setting) int { return strings.Compare(a.File, b.File) })
	return settings
}

func netDevicesOf(devices map[string]specs.LinuxNetDevice) []NetDevice {
	list := make([]NetDevice, 0, len(devices))
	for name, d := range devices {
		list = append(list, NetDevice{Name: name, NewName: d.Name, At: spec.Join("/linux/netDevices", name)})
	}
	slices.SortFunc(list, func(a, b NetDevice) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// processExtras adds what the linux section says of the container's processes;
// exec inherits it.
func processExtras(p *Process, linux *specs.Linux) []spec.Complaint {
	var problems []spec.Complaint
	if linux.MemoryPolicy != nil {
		policy, problem := memoryPolicy(linux.MemoryPolicy)
		if problem != "" {
			problems = append(problems, spec.Complaint{Pointer: "/linux/memoryPolicy", Message: problem})
		}
		p.MemoryPolicy = policy
	}
	if linux.Personality != nil {
		p.Personality = personality(linux.Personality)
	}
	if linux.Seccomp != nil {
		filter, problem := compileFilter(linux.Seccomp)
		if problem != nil {
			problems = append(problems, *problem)
		}
		p.Seccomp = filter
	}
	return problems
}

// personality returns the argument of personality(2): PER_LINUX or PER_LINUX32.
func personality(in *specs.LinuxPersonality) *uint64 {
	var value uint64
	if in.Domain == specs.PerLinux32 {
		value = 8
	}
	return &value
}

// compileFilter compiles a seccomp profile.
func compileFilter(profile *specs.LinuxSeccomp) (*Seccomp, *spec.Complaint) {
	const at = "/linux/seccomp"
	filter, err := seccomp.Compile(profile)
	if err != nil {
		var wrong *seccomp.ProfileError
		if errors.As(err, &wrong) {
			return nil, &spec.Complaint{Pointer: at + wrong.Pointer, Message: wrong.Problem}
		}
		return nil, &spec.Complaint{Pointer: at, Message: err.Error()}
	}
	if filter.Notify {
		if problem := handsOver(profile); problem != "" {
			return nil, &spec.Complaint{Pointer: at + "/syscalls", Message: problem}
		}
	}
	return &Seccomp{Filter: filter, ListenerPath: profile.ListenerPath, ListenerMetadata: profile.ListenerMetadata, Profile: profile}, nil
}
