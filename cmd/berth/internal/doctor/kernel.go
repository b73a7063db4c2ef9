package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/cgroup/device"
	"github.com/berth-runtime/berth/internal/kernel"
	"github.com/berth-runtime/berth/internal/sys"
	"github.com/berth-runtime/berth/seccomp"
	"golang.org/x/sys/unix"
)

func kernelVersion(m *Machine) []Finding {
	release := m.read("proc/sys/kernel/osrelease")
	f := Finding{Check: "kernel", For: Everyone, Found: release}
	major, minor, ok := version(release)
	leastMajor, leastMinor, _ := version(kernel.Floor) // what is older is not tried
	if !ok {
		f.State, f.Found = Note, "its version "+strconv.Quote(release)+" has no numbers"
	} else if major < leastMajor || major == leastMajor && minor < leastMinor {
		f.State, f.Without = Gap, "nothing is known to work on it"
		f.Fix = []Fix{{Run: "use Linux " + kernel.Floor + " or newer"}}
	}
	return []Finding{f}
}

// version reads the first two numbers of a kernel's release.
func version(release string) (major, minor int, ok bool) {
	first, rest, _ := strings.Cut(release, ".")
	if end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
		rest = rest[:end]
	}
	major, err1 := strconv.Atoi(first)
	minor, err2 := strconv.Atoi(rest)
	return major, minor, err1 == nil && err2 == nil
}

// A feature of the kernel is tried, never concluded from its version: it may be
// patched in, built out, or forbidden.
type feature struct {
	name string
	of   *kernel.Feature
	try  func() error
	// without says what is missing without it; required ones have no other way.
	without  string
	required bool
	needs    Audience // who can try it
	fix      func(*Machine, error) []Fix
}

// errForbidden is the answer of a probe that can't tell, since something stands
// before the kernel.
var errForbidden = errors.New("can't be tried: it is not permitted here")

// features lists what is tried, here and not in a variable, which would be made at
// the start of every program that links this in.
func features() []feature {
	return []feature{
		{name: "openat2", of: &kernel.Openat2, try: tryOpenat2, required: true, without: "paths can't be kept inside of a container's root"},
		{name: "mount API", of: &kernel.MountAPI, try: tryMountAPI, required: true, without: "nothing can be mounted"},
		{name: "mount_setattr", of: &kernel.MountSetattr, try: tryMountSetattr, without: "mounts are changed one by one, once they are attached"},
		{name: "idmapped mounts", of: &kernel.IDMap, try: tryIDMap, needs: Root, without: "mounts with uidMappings are refused"},
		{name: "pidfd", of: &kernel.Pidfd, try: tryPidfd, required: true, without: "processes can't be waited for"},
		{name: "pidfd_getfd", of: &kernel.PidfdGetfd, try: tryPidfdGetfd, without: "terminals and seccomp listeners can't be fetched"},
		{name: "clone into a cgroup", of: &kernel.CloneIntoCgroup, try: tryCloneIntoCgroup, without: "containers join their cgroup a moment later"},
		{name: "execution from memory", of: &kernel.Memfd, try: tryMemfd, required: true, without: "no container can be started",
			fix: func(m *Machine, err error) []Fix {
				if err != unix.EACCES {
					return nil
				}
				return m.setting("vm.memfd_noexec", "1") // 2 refuses also those that ask for it
			}},
		{name: "seccomp filters", of: &kernel.SeccompFilter, try: trySeccomp, required: true, without: "configs with a seccomp profile are refused"},
		{name: "seccomp notification", of: &kernel.SeccompNotify, try: trySeccompNotify, without: "profiles with SCMP_ACT_NOTIFY are refused"},
		{name: "time namespaces", of: &kernel.TimeNamespace, try: exists("/proc/self/ns/time"), without: "configs with a time namespace are refused"},
		{name: "cgroup.kill", of: &kernel.CgroupKill, try: tryCgroupKill, without: "containers are killed process by process"},
		{name: "cgroup device programs", of: &kernel.DeviceProgram, try: tryDeviceProgram, needs: Root, without: "device rules have no effect on cgroup v2"},
		{name: "Landlock", of: &kernel.Landlock, try: tryLandlock, without: "Landlock rules are refused",
			fix: func(m *Machine, err error) []Fix {
				if err != unix.EOPNOTSUPP { // built in, and not switched on
					return nil
				}
				return m.bootOption("lsm=landlock," + m.read("sys/kernel/security/lsm"))
			}},
		{name: "pressure stall information", of: &kernel.Pressure, try: readable("/proc/pressure/cpu"), without: "events have no pressure figures",
			fix: func(m *Machine, _ error) []Fix { return m.bootOption("psi=1") }},
		{name: "overlay in a user namespace", of: &kernel.Overlay, try: tryOverlay, without: "users' engines need fuse-overlayfs, or copy images"},
	}
}

func kernelFeatures(m *Machine) []Finding {
	var findings []Finding
	for _, f := range features() {
		findings = append(findings, f.examine(m))
	}
	return findings
}

func (f *feature) examine(m *Machine) Finding {
	found := Finding{Check: f.name, For: Everyone, Found: "works"}
	if f.needs == Root && m.UID != 0 {
		found.State, found.Found = Note, "only root can try it ("+f.of.Needs()+")"
		return found
	}
	err := f.try()
	switch {
	case err == nil:
		return found
	case errors.Is(err, errForbidden):
		found.State, found.Found = Note, err.Error()
		return found
	}
	found.State, found.Found, found.Without = Note, err.Error()+" ("+f.of.Needs()+")", f.without
	if f.required {
		found.State = Gap
	}
	if f.fix != nil {
		found.Fix = f.fix(m, err)
	}
	if f.required && len(found.Fix) == 0 {
		found.Fix = []Fix{{Run: "use Linux " + f.of.Least + " or newer, outside of containers whose seccomp filter forbids it"}}
	}
	return found
}

// known takes errors that a call gives for its arguments for the sign that the
// kernel has it.
func known(err error) error {
	if err == unix.ENOSYS || err == unix.EOPNOTSUPP {
		return err
	}
	return nil
}

func exists(path string) func() error {
	return func() error {
		_, err := os.Lstat(path)
		return err
	}
}

func readable(path string) func() error {
	return func() error {
		_, err := os.ReadFile(path)
		return err
	}
}

func tryOpenat2() error {
	fd, err := unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS})
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func tryMountAPI() error {
	fd, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err == nil {
		unix.Close(fd)
	}
	return known(err)
}

func tryMountSetattr() error {
	return known(unix.MountSetattr(-1, "", 0, &unix.MountAttr{}))
}

// tryIDMap gives a descriptor that is none: a kernel that knows the attribute
// looks at it (EBADF), one that does not refuses the attribute (EINVAL).
func tryIDMap() error {
	err := unix.MountSetattr(-1, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: 1 << 30})
	switch err {
	case unix.EBADF:
		return nil
	case unix.EPERM:
		return errForbidden
	}
	return err
}

func tryPidfd() error {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.PidfdSendSignal(fd, 0, nil, 0)
}

func tryPidfdGetfd() error {
	self, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return err
	}
	defer unix.Close(self)
	fd, err := unix.PidfdGetfd(self, self, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// tryCloneIntoCgroup clones into the cgroup that we are in, where we may not
// have the right to: that is looked at after the flag.
func tryCloneIntoCgroup() error {
	dir, err := ownUnified()
	if err != nil {
		return err
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	switch err := tryClone(&syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: fd}); err {
	case unix.EACCES, unix.EPERM, unix.EBUSY:
		return nil
	default:
		return err
	}
}

// ownUnified is the directory of our cgroup on version 2.
func ownUnified() (string, error) {
	h, err := cgroup.Detect()
	if err != nil {
		return "", err
	}
	g, err := h.OfProcess(0)
	if err != nil {
		return "", err
	}
	defer g.Close()
	if dir := g.Directory("unified"); dir != "" {
		return dir, nil
	}
	return "", errors.New("there is no cgroup v2 hierarchy")
}

func tryMemfd() error {
	fd, err := unix.MemfdCreate("berth-doctor", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if err == unix.EINVAL { // before 6.3 there was no such flag, and no need of it
		fd, err = unix.MemfdCreate("berth-doctor", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err == nil {
		unix.Close(fd)
	}
	if err == unix.EACCES {
		// vm.memfd_noexec is 2; who may mount takes a file of a tmpfs of their own.
		if fs, cause := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC); cause == nil {
			unix.Close(fs)
			return nil
		}
	}
	return err
}

func trySeccomp() error {
	if len(seccomp.Supported().SupportedFlags) == 0 {
		return unix.ENOSYS
	}
	return nil
}

func trySeccompNotify() error {
	const userNotify = 0x7fc00000 // SECCOMP_RET_USER_NOTIF
	if !sys.SeccompActionAvailable(userNotify) {
		return unix.EOPNOTSUPP
	}
	return nil
}

func tryCgroupKill() error {
	h, err := cgroup.Detect()
	if err != nil {
		return err
	}
	if h.Unified() == nil {
		return errors.New("there is no cgroup v2 hierarchy")
	}
	// The root has no such file, every other group has.
	for _, pattern := range [...]string{"cgroup.kill", "*/cgroup.kill"} {
		if found, _ := filepath.Glob(filepath.Join(h.Unified().Mountpoint, pattern)); len(found) > 0 {
			return nil
		}
	}
	if groups, _ := filepath.Glob(filepath.Join(h.Unified().Mountpoint, "*/cgroup.procs")); len(groups) == 0 {
		return errForbidden // there is no group to look at
	}
	return unix.ENOENT
}

func tryDeviceProgram() error {
	policy, err := device.Fold(nil)
	if err != nil {
		return err
	}
	program, err := sys.LoadCgroupDevice("berth_doctor", policy.Program())
	if err == nil {
		program.Close()
	}
	if errors.Is(err, unix.EPERM) {
		return errForbidden
	}
	return err
}

func tryLandlock() error {
	const version = 1 // LANDLOCK_CREATE_RULESET_VERSION
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, version)
	if errno != 0 {
		return errno
	}
	if abi < 1 {
		return unix.EOPNOTSUPP
	}
	return nil
}
