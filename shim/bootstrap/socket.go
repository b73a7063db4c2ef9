package bootstrap

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/task"
)

const (
	// socketFolder is where shims have their sockets unless they are told another.
	socketFolder = "/run/containerd/s"
	// socketFolderVariable tells another, to containerd before 2.3, which cannot.
	socketFolderVariable = "BERTH_SHIM_SOCKET_DIR"
	// longestSocketPath is what struct sockaddr_un has room for, less its zero, and
	// less one more, which containerd keeps and ttrpc.Unfinished takes.
	longestSocketPath = 106
	// answerTimeout is how long a shim that has its socket open may take to say
	// that it lives. A delete asks up to three times, and containerd gives that a few
	// seconds. A start fails when there is no answer, and so waits longer: on a machine
	// with ten times the work that it has processors for, one shim took more than four.
	answerTimeout      = 2 * time.Second
	startAnswerTimeout = 10 * time.Second
)

// socketPath is where the shim of a group listens. The name is the one that
// runc's shim uses, so that a pod moves over as a whole, whichever came first.
func socketPath(dir string, a *Args, group string) (string, error) {
	if dir == "" {
		dir = os.Getenv(socketFolderVariable)
	}
	if dir == "" {
		dir = socketFolder
	}
	sum := sha256.Sum256([]byte(filepath.Join(a.Address, a.Namespace, group)))
	path := filepath.Join(dir, hex.EncodeToString(sum[:]))
	if len(path) > longestSocketPath {
		return "", fmt.Errorf("socket path %s has %d bytes, and the limit is %d: use a shorter directory", path, len(path), longestSocketPath)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("create the directory of the shim's socket: %w", err)
	}
	return path, nil
}

func listen(path string) (*os.File, error) {
	unlock, err := lockFolder(path)
	if err != nil {
		return nil, fmt.Errorf("directory of the shim's socket: %w", err)
	}
	defer unlock()
	return ttrpc.Listen(path)
}

// removeUnfinished removes what a start has left that was killed while it made
// its socket.
func removeUnfinished(path string) {
	making := ttrpc.Unfinished(path)
	if _, err := os.Lstat(making); err != nil {
		return
	}
	unlock, err := lockFolder(path)
	if err != nil {
		return
	}
	defer unlock()
	unix.Unlink(making)
}

// announce tells the shim at path that a container is coming, so that it does
// not leave meanwhile. A shim of another make does not know the call, but it
// answers, which is all that is asked of it.
func announce(path, id string) error {
	conn, err := ttrpc.Dial(path)
	if err != nil {
		return err
	}
	client := ttrpc.NewClient(conn)
	defer client.Close()
	err = client.Call(task.OwnService, task.ExpectMethod, nil, startAnswerTimeout, &wire.ConnectRequest{ID: id}, &wire.ConnectResponse{})
	if ttrpc.CodeOf(err) == ttrpc.Unimplemented {
		return nil
	}
	return err
}

// lockFolder keeps apart those who make a socket, or take its file away. A file that is
// there can then only be replaced by who holds the lock.
func lockFolder(path string) (unlock func(), err error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Flock(int(dir.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		dir.Close()
		return nil, &os.PathError{Op: "lock", Path: dir.Name(), Err: err}
	}
	return func() { dir.Close() }, nil
}

// socketAt is the file at a path, to be told from one that takes its place; nil for none.
func socketAt(path string) *unix.Stat_t {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return nil
	}
	return &st
}

// removeDead removes the socket of a shim that is dead or about to leave, unless another start has
// replaced it meanwhile. Whether it is was asked before, without the lock: a start that has made
// its socket takes the lock again, for that of the debugger, before it has a server that answers.
func removeDead(path string, dead *unix.Stat_t) error {
	if dead == nil {
		return nil
	}
	// The number of a file may be given to the next one.
	return removeIf(path, func(now *unix.Stat_t) bool { return sameFile(now, dead) && now.Ctim == dead.Ctim })
}

// RemoveSocket removes the socket that the server of this process listens on,
// and not one that has taken its place.
func RemoveSocket(path string, own *unix.Stat_t) error {
	return removeIf(path, func(now *unix.Stat_t) bool { return sameFile(now, own) })
}

func sameFile(a, b *unix.Stat_t) bool { return a.Ino == b.Ino && a.Dev == b.Dev }

// removeIf removes the file at a path, with the lock held, if it is what it should be.
func removeIf(path string, is func(now *unix.Stat_t) bool) error {
	unlock, err := lockFolder(path)
	if err != nil {
		return err
	}
	defer unlock()
	if now := socketAt(path); now == nil || !is(now) {
		return nil
	}
	if err := unix.Unlink(path); err != nil {
		return &os.PathError{Op: "unlink", Path: path, Err: err}
	}
	return nil
}
