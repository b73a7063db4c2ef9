package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

func atoi(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestSysctl(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	c.Spec.Linux.Sysctl = map[string]string{"net.ipv4.ip_forward": "1", "kernel.shm_rmid_forced": "1", "net/ipv4/ip_default_ttl": "61"}
	got := c.Try("read=/proc/sys/net/ipv4/ip_forward", "read=/proc/sys/kernel/shm_rmid_forced", "read=/proc/sys/net/ipv4/ip_default_ttl")
	for what, want := range map[string]string{"read=/proc/sys/net/ipv4/ip_forward": "1\n", "read=/proc/sys/kernel/shm_rmid_forced": "1\n", "read=/proc/sys/net/ipv4/ip_default_ttl": "61\n"} {
		if got[what].Result != want {
			t.Errorf("%s: %+v, want %q", what, got[what], want)
		}
	}
}

// A parameter of the host, or of a namespace that the container shares with it, is not the
// container's to set.
func TestSysctlRefused(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true")
	// What the host has, lest an engine that does not refuse it change that.
	c.Spec.Linux.Sysctl = map[string]string{"vm.swappiness": strings.TrimSpace(readFile(t, "/proc/sys/vm/swappiness"))}
	c.Run().Fails(t, "/linux/sysctl/vm.swappiness")
	c.Spec.Linux.Sysctl = map[string]string{"net.ipv4.ip_forward": "1"}
	harness.WithoutNamespace(c.Spec, specs.NetworkNamespace)
	c.Run().Fails(t, "/linux/sysctl/net.ipv4.ip_forward")
	// The host's by another name is the host's all the same.
	c.Spec.Linux.Namespaces = append(c.Spec.Linux.Namespaces, specs.LinuxNamespace{Type: specs.NetworkNamespace, Path: procPath(os.Getpid(), "ns/net")})
	before := readFile(t, "/proc/sys/net/ipv4/ip_forward")
	c.Spec.Linux.Sysctl["net.ipv4.ip_forward"] = strings.TrimSpace(before)
	c.Run().Fails(t, "/linux/sysctl/net.ipv4.ip_forward", "host")
}

func TestDevices(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	mode, id := os.FileMode(0o640), uint32(1234)
	c.Spec.Linux.Devices = []specs.LinuxDevice{
		{Path: "/dev/mynull", Type: "c", Major: 1, Minor: 3, FileMode: &mode, UID: &id, GID: &id},
		{Path: "/srv/deep/block", Type: "b", Major: 7, Minor: 200},
		{Path: "/dev/myfifo", Type: "p"},
		{Path: "/dev/myzero", Type: "u", Major: 1, Minor: 5},
	}
	v := c.Look("/dev/mynull", "/srv/deep/block", "/dev/myfifo", "/dev/myzero")
	if f := v.Files["/dev/mynull"]; f.Type != "char" || f.Major != 1 || f.Minor != 3 || f.Mode != 0o640 || f.UID != 1234 || f.GID != 1234 {
		t.Errorf("/dev/mynull is %+v", f)
	}
	if f := v.Files["/srv/deep/block"]; f.Type != "block" || f.Major != 7 || f.Minor != 200 {
		t.Errorf("/srv/deep/block is %+v", f)
	}
	if f := v.Files["/dev/myfifo"]; f.Type != "fifo" {
		t.Errorf("/dev/myfifo is %+v", f)
	}
	if f := v.Files["/dev/myzero"]; f.Type != "char" || f.Major != 1 || f.Minor != 5 {
		t.Errorf("/dev/myzero is %+v", f)
	}
}

func TestDeviceInTheWay(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true")
	c.WriteFile("srv/taken", "a file", 0o644)
	c.Spec.Linux.Devices = []specs.LinuxDevice{{Path: "/srv/taken", Type: "c", Major: 1, Minor: 3}}
	c.Run().Fails(t, "/linux/devices/0", "/srv/taken")
}

func TestTmpCopyUp(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	c.WriteFile("data/below/file", "kept", 0o640)
	c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: "/data", Type: "tmpfs", Source: "tmpfs", Options: []string{"tmpcopyup"}})
	got := c.Try("read=/data/below/file", "create=/data/new")
	harness.Allowed(t, got, "read=/data/below/file", "create=/data/new")
	if got["read=/data/below/file"].Result != "kept" {
		t.Errorf("the copy is %+v", got["read=/data/below/file"])
	}
	if _, err := os.Stat(c.Path("data/new")); err == nil {
		t.Error("what was made in the tmpfs is in the root file system")
	}
}

// In a user namespace the tmpfs takes files of mapped owners only.
func TestTmpCopyUpInAUserNamespace(t *testing.T) {
	harness.NeedNamespace(t, "user")
	b := harness.New(t)
	c := b.Container()
	harness.UserNamespace(c.Spec)
	c.WriteFile("data/below/file", "kept", 0o640)
	for name, id := range map[string]int{"data": 100000, "data/below": 100000, "data/below/file": 101000} {
		if err := os.Chown(c.Path(name), id, id); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("file", c.Path("data/below/link")); err != nil {
		t.Fatal(err)
	}
	c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: "/data", Type: "tmpfs", Source: "tmpfs", Options: []string{"tmpcopyup"}})
	files := c.Look("/data/below", "/data/below/file", "/data/below/link").Files
	if f := files["/data/below/file"]; f.Type != "file" || f.UID != 1000 || f.GID != 1000 || f.Mode != 0o640 || f.Size != 4 {
		t.Errorf("the copy is %+v", f)
	}
	if f := files["/data/below/link"]; f.LinkTarget != "file" {
		t.Errorf("the copy of the link is %+v", f)
	}
}

func TestBindMountOptions(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	b.WriteFile("tree/file", "x", 0o644)
	c.Spec.Mounts = append(c.Spec.Mounts,
		specs.Mount{Destination: "/ro", Type: "bind", Source: b.Path("tree"), Options: []string{"bind", "ro", "nosuid", "nodev", "noexec"}},
		specs.Mount{Destination: "/rro", Type: "bind", Source: b.Path("tree"), Options: []string{"rbind", "rro"}},
		specs.Mount{Destination: "relative", Type: "bind", Source: b.Path("tree"), Options: []string{"bind"}},
		specs.Mount{Destination: "/one/file", Type: "bind", Source: b.Path("tree/file"), Options: []string{"bind"}})
	v := c.Look("/one/file")
	harness.HasOptions(t, harness.MountAt(t, v, "/ro"), "ro", "nosuid", "nodev", "noexec")
	harness.HasOptions(t, harness.MountAt(t, v, "/rro"), "ro")
	harness.MountAt(t, v, "/relative")
	if v.Files["/one/file"].Type != "file" {
		t.Errorf("/one/file is %+v", v.Files["/one/file"])
	}
}

func TestIDMappedMount(t *testing.T) {
	harness.NeedNamespace(t, "user")
	b := harness.New(t)
	c := b.Container()
	file := b.WriteFile("tree/file", "x", 0o644)
	if err := os.Chown(file, 1000, 1001); err != nil {
		t.Fatal(err)
	}
	c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: "/mapped", Type: "bind", Source: filepath.Dir(file), Options: []string{"bind", "idmap"},
		UIDMappings: []specs.LinuxIDMapping{{ContainerID: 1000, HostID: 5000, Size: 1}}, GIDMappings: []specs.LinuxIDMapping{{ContainerID: 1001, HostID: 6000, Size: 1}}})
	c.Spec.Process.Args = []string{"/inside", "look", "/mapped/file"}
	r := c.Run()
	if r.Code != 0 && r.Stderr != "" {
		if err := unix.MountSetattr(-1, "", unix.AT_EMPTY_PATH, &unix.MountAttr{}); err == unix.ENOSYS {
			harness.Skip(t, "needs idmapped mounts (Linux 5.12)")
		}
	}
	if f := harness.ParseView(t, r.OK(t).Stdout).Files["/mapped/file"]; f.UID != 5000 || f.GID != 6000 {
		t.Errorf("the file belongs to %d:%d, want 5000:6000", f.UID, f.GID)
	}
}

// The filter is the container's and that of what exec adds.
func TestSeccomp(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	errno := uint(unix.EXDEV)
	c.Spec.Linux.Seccomp = &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Syscalls: []specs.LinuxSyscall{
		{Names: []string{"mkdir", "mkdirat"}, Action: specs.ActErrno},
		{Names: []string{"sethostname"}, Action: specs.ActErrno, ErrnoRet: &errno},
	}}
	got := c.Try("mkdir=/new", "sethostname=other", "create=/file")
	harness.Refused(t, got, "mkdir=/new", "EPERM")
	harness.Refused(t, got, "sethostname=other", "EXDEV")
	harness.Allowed(t, got, "create=/file")
	c.Spec.Process.Args = []string{"/inside", "hang"}
	c.RunDetached()
	harness.Refused(t, harness.ParseAttempts(t, c.Exec(nil, "/inside", "try", "mkdir=/new").OK(t).Stdout), "mkdir=/new", "EPERM")
	c.Delete("--force")
}

// The agent is sent the listener with the container process state, once, and what it answers is
// what the call returns.
func TestSeccompNotify(t *testing.T) {
	b := harness.New(t)
	agent := b.FDSocket("agent.sock")
	c := b.Container("/inside", "try", "mkdir=/new")
	c.Spec.Annotations = map[string]string{"note": "kept"}
	c.Spec.Linux.Seccomp = &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, ListenerPath: agent.Path, ListenerMetadata: "for the agent",
		Syscalls: []specs.LinuxSyscall{{Names: []string{"mkdir", "mkdirat"}, Action: specs.ActNotify}}}
	cmd := c.Command("run", nil)
	running := cmd.Start()
	text, fd := agent.ReceiveOnly()
	defer unix.Close(fd)
	var state specs.ContainerProcessState
	if err := json.Unmarshal([]byte(text), &state); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if state.Version == "" || len(state.Fds) != 1 || state.Fds[0] != specs.SeccompFdName || state.Metadata != "for the agent" || state.Pid <= 0 ||
		state.State.ID != c.ID || state.State.Bundle != c.Dir || state.State.Status != specs.StateCreating && state.State.Status != specs.StateCreated || state.State.Annotations["note"] != "kept" {
		t.Errorf("container process state %s", text)
	}
	// struct seccomp_notif of 80 bytes, seccomp_notif_resp of 24 (seccomp_unotify(2)).
	var request [80]byte
	const receive, respond = 0xc0502100, 0xc0182101
	if err := ioctl(fd, receive, request[:]); err != nil {
		t.Fatal(err)
	}
	var answer [24]byte
	copy(answer[:8], request[:8])
	wrong := int32(-int32(unix.ENOTNAM))
	for i := range 4 {
		answer[16+i] = byte(uint32(wrong) >> (8 * i))
	}
	if err := ioctl(fd, respond, answer[:]); err != nil {
		t.Fatal(err)
	}
	harness.Refused(t, harness.ParseAttempts(t, running.Wait().OK(t).Stdout), "mkdir=/new", "ENOTNAM")
	agent.NoMore()
}

func TestSeccompNotifyWithoutAgent(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true")
	c.Spec.Linux.Seccomp = &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, ListenerPath: b.Path("nobody.sock"),
		Syscalls: []specs.LinuxSyscall{{Names: []string{"mkdir"}, Action: specs.ActNotify}}}
	c.Run().Fails(t, "/linux/seccomp/listenerPath", "nobody.sock")
}

// What would let the start hang, or take the listener for a failure, is refused before anything is
// made.
func TestSeccompNotifyRefused(t *testing.T) {
	b := harness.New(t)
	agent := b.FDSocket("agent.sock")
	c := b.Container("/bin/true")
	profile := func(action specs.LinuxSeccompAction, names ...string) {
		c.Spec.Linux.Seccomp = &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, ListenerPath: agent.Path, Syscalls: []specs.LinuxSyscall{{Names: names, Action: action}}}
	}
	profile(specs.ActNotify, "mkdir", "sendmsg")
	c.Run().Fails(t, "/linux/seccomp/syscalls", "sendmsg")
	profile(specs.ActNotify, "mkdir", "write")
	c.Run().Fails(t, "/linux/seccomp/syscalls/0/names/1", "write")
	profile(specs.ActNotify, "mkdir")
	c.Spec.Linux.Seccomp.ListenerPath = ""
	c.Run().Fails(t, "/linux/seccomp/listenerPath", "required")
	c.Spec.Linux.Seccomp.DefaultAction, c.Spec.Linux.Seccomp.ListenerPath = specs.ActNotify, agent.Path
	c.Run().Fails(t, "/linux/seccomp/defaultAction", "SCMP_ACT_NOTIFY")
	profile(specs.ActErrno, "mkdir")
	c.Spec.Linux.Seccomp.ListenerPath, c.Spec.Linux.Seccomp.ListenerMetadata = "", "for nobody"
	c.Run().Fails(t, "/linux/seccomp/listenerMetadata")
}

// ioctl makes an ioctl whose argument is a structure.
func ioctl(fd int, request uintptr, data []byte) error {
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(&data[0])))
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			return errno
		}
		return nil
	}
}
