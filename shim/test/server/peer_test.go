package server_test

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/containerd/ttrpc"
	"golang.org/x/sys/unix"

	taskapi "github.com/containerd/containerd/api/runtime/task/v3"
)

// A call to a shim can start processes as root. So it answers nobody
// else, also where the permissions of its socket would let him in.
func TestOtherUsersAreRefused(t *testing.T) {
	n := newNode(t)
	b := n.run("c", "sleep", "1000")
	path := strings.TrimPrefix(b.address(), "unix://")
	n.must(os.Chmod(n.dir, 0o711))
	n.must(os.Chmod(filepath.Dir(path), 0o711))
	n.must(os.Chmod(path, 0o666))
	for _, who := range []struct {
		name     string
		uid, gid int
		answered bool
	}{{"root", 0, 0, true}, {"nobody", 65534, 65534, false}, {"root of another group", 0, 65534, false}} {
		client := ttrpc.NewClient(n.dialAs(path, who.uid, who.gid))
		_, err := taskapi.NewTTRPCTaskClient(client).Connect(n.ctx(), &taskapi.ConnectRequest{ID: "c"})
		client.Close()
		if (err == nil) != who.answered {
			t.Errorf("a call by %s: %v", who.name, err)
		}
	}
	b.remove()
	b.gone()
	wait.Until(n.t, "a line on those who were refused in the log", func() bool {
		return strings.Contains(n.logged(), "connection refused: peer with pid")
	})
}

// dialAs connects as another user. System calls that are made directly change
// the ids of one thread alone.
func (n *node) dialAs(path string, uid, gid int) net.Conn {
	n.t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	n.must(err)
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const unchanged = ^uintptr(0)
	become := func(uid, gid uintptr) {
		for _, set := range []struct{ number, id uintptr }{{unix.SYS_SETRESGID, gid}, {unix.SYS_SETRESUID, uid}} {
			if _, _, e := unix.RawSyscall(set.number, unchanged, set.id, unchanged); e != 0 {
				n.t.Fatalf("change the thread's ids to %d and %d: %v", uid, gid, e)
			}
		}
	}
	become(uintptr(uid), uintptr(gid))
	err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
	become(0, 0)
	n.must(err)
	conn, err := net.FileConn(file)
	n.must(err)
	return conn
}
