package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/shim/engine"
	"github.com/berth-runtime/berth/shim/engine/ociexec"
	"github.com/berth-runtime/berth/shim/internal/bundle"
	"github.com/berth-runtime/berth/shim/internal/bundle/options"
	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/mounts"
	"github.com/berth-runtime/berth/shim/task"
)

// killed is the status of an init whose exit was not seen: 128 and SIGKILL.
const killed = 137

// deleteTimeout is less than containerd's own, after which it kills us.
const deleteTimeout = 4500 * time.Millisecond

// settleLimit is how long a runtime may take to end what a dead shim has called
// it for.
const settleLimit = 2 * time.Second

// Engines gives the engine for a container's options.
type Engines func(o *options.Options, namespace string) (engine.Engine, error)

// Delete removes whatever is left of a container, and of the members of its
// group when its shim has died, and prints how the container ended. Mostly
// there is nothing left: containerd calls this after every orderly end too.
func Delete(a *Args, engines Engines, out io.Writer) error {
	if a.ID == "" || a.Namespace == "" {
		return errors.New("delete needs -id and -namespace")
	}
	dir, err := a.absolute()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), deleteTimeout)
	defer cancel()

	members, err := bundle.Members(dir)
	if err != nil {
		return err
	}
	if text, err := os.ReadFile(filepath.Join(dir, "address")); err == nil {
		path := ttrpc.Path(strings.TrimSpace(string(text)))
		if cleanSocket(path, dir, a.ID) {
			// The shim serves the others of the group as before.
			members = nil
		}
		removeUnfinished(path)
		removeUnfinished(debugSocket(dir))
	}
	own, err := options.Load(dir)
	if errors.Is(err, os.ErrNotExist) {
		own = new(options.Options) // it was never created
	} else if err != nil {
		return err
	}
	var errs []error
	for id, memberDir := range members {
		// containerd before 2.4 may have removed the bundles of a pod's containers by
		// now, though these still run. They were made with their sandbox's options.
		if err := remove(ctx, id, memberDir, a.Namespace, own, engines); err != nil {
			errs = append(errs, err)
		}
	}
	if err := remove(ctx, a.ID, dir, a.Namespace, own, engines); err != nil {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	answer := &wire.DeleteResponse{Pid: uint32(bundle.InitPid(dir)), ExitStatus: killed, ExitedAt: wire.Time(time.Now())}
	if end, known := bundle.LoadEnd(dir); known {
		answer = &wire.DeleteResponse{Pid: uint32(end.Pid), ExitStatus: uint32(end.Status), ExitedAt: wire.Time(end.At)}
	}
	_, err = out.Write(wire.Marshal(answer))
	return err
}

// cleanSocket says whether the shim of a bundle lives, and removes the socket
// of one that does not. That a connection can be made is not enough: a process
// that is being killed keeps its sockets for a moment. A shim that lives learns
// that the container is not coming, should it still wait for it.
func cleanSocket(path, dir, id string) (alive bool) {
	// A dying process gives its sockets up one by one. A connection that is
	// not accepted ends when the listening one goes, and the next is refused.
	for range 3 {
		there := socketAt(path)
		conn, err := ttrpc.Dial(path)
		switch {
		case errors.Is(err, unix.ECONNREFUSED):
			_ = removeDead(path, there)
			if debug := debugSocket(dir); debug != "" {
				unix.Unlink(debug)
			}
			return false
		case errors.Is(err, unix.ENOENT):
			// The delete of another member was here first. Of the socket for debugging
			// only the bundle of the first one says where it is.
			removeIfDead(debugSocket(dir))
			return false
		case err != nil:
			return errors.Is(err, unix.EAGAIN) // its queue is full
		}
		client := ttrpc.NewClient(conn)
		// It is asked in our own way, so that it does not wait for a container whose
		// start was killed. One of another make answers that it does not know the call.
		err = client.Call(task.OwnService, task.ForgetMethod, nil, answerTimeout, &wire.ConnectRequest{ID: id}, &wire.ConnectResponse{})
		client.Close()
		var answer *ttrpc.Error
		if err == nil || errors.As(err, &answer) {
			return true
		}
	}
	return false
}

// debugSocket is the one that the shim was given with a bundle, or "".
func debugSocket(dir string) string {
	text, err := os.ReadFile(filepath.Join(dir, debugAddress))
	if err != nil {
		return ""
	}
	return ttrpc.Path(strings.TrimSpace(string(text)))
}

// removeIfDead removes a socket without a listener.
func removeIfDead(path string) {
	if path == "" {
		return
	}
	there := socketAt(path)
	conn, err := ttrpc.Dial(path)
	if err == nil {
		conn.Close()
	} else if errors.Is(err, unix.ECONNREFUSED) {
		_ = removeDead(path, there)
	}
}

// remove kills and removes one container, and unmounts its root file system. fallback
// are the options of one whose bundle has none.
func remove(ctx context.Context, id, dir, namespace string, fallback *options.Options, engines Engines) error {
	ociexec.Settle(dir, settleLimit)
	o, err := options.Load(dir)
	if errors.Is(err, os.ErrNotExist) {
		o = fallback
	} else if err != nil {
		return err
	}
	// Both engines keep a directory for each container: without it there is nothing
	// to be removed, and no engine to be started for it.
	if _, err := os.Lstat(filepath.Join(o.StateRoot(namespace), id)); !errors.Is(err, os.ErrNotExist) {
		eng, err := engines(o, namespace)
		if err != nil {
			return fmt.Errorf("remove container %s: %w", id, err)
		}
		if err := eng.Remove(ctx, id); err != nil {
			return fmt.Errorf("remove container %s: %w", id, err)
		}
	}
	return mounts.Unmount(filepath.Join(dir, "rootfs"))
}
