package plan

import (
	"slices"
	"strconv"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// A container can be a unit with Type=notify (sd_notify(3)): its process is given a socket
// of ours, in a directory that is mounted where systemd's container interface wants it.
const (
	notifyInside = "/run/host/notify"
	// NotifySocket is the socket's name in Options.NotifyDir.
	NotifySocket = "socket"
)

// addNotify plans the mount of the notify socket's directory.
func (p *Plan) addNotify(dir string) {
	if dir == "" || p.Namespace(specs.MountNamespace) == nil {
		return
	}
	p.NotifyDir = dir
	p.Mounts = append(p.Mounts, Mount{
		Destination: notifyInside, Source: dir, Bind: true,
		// Read-only, a process can write to the socket and to nothing else.
		Set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC,
	})
	p.Process.Env = append(p.Process.Env, "NOTIFY_SOCKET="+notifyInside+"/"+NotifySocket)
}

// addListen tells the process of socket activation: it will be process 1 of its pid
// namespace (sd_listen_fds(3)).
func (p *Process) addListen(n int) {
	if n > 0 {
		p.Env = append(p.Env, "LISTEN_FDS="+strconv.Itoa(n), "LISTEN_PID=1")
	}
}

// AddHome gives the process HOME where its config gives none. An empty value is what
// clients write that don't know about it.
func (p *Process) AddHome(look func() string) {
	if slices.ContainsFunc(p.Env, func(e string) bool { return strings.HasPrefix(e, "HOME=") && e != "HOME=" }) {
		return
	}
	p.Env = slices.DeleteFunc(p.Env, func(e string) bool { return e == "HOME=" })
	p.Env = append(p.Env, "HOME="+look())
}
