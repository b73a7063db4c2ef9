package task

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/mounts"
)

// OwnService is the service of ours, by which a start tells a shim that is running already that one
// more container is coming, and the command "delete" that one is not, or is being removed behind
// the shim's back.
const (
	OwnService   = "berth.shim.v1.Shim"
	ExpectMethod = "Expect"
	ForgetMethod = "Forget"
)

// UpgradeService is the one by which the command "upgrade" asks a shim to take another program. (Of
// its own, since the package that answers it has all parts of a shim.)
const (
	UpgradeService = "berth.shim.v1.Upgrade"
	UpgradeMethod  = "Upgrade"
)

// expectation is how long the shim stays for a container that a start has announced. containerd
// creates it right after the start has answered.
const expectation = time.Minute

// patience is how long the command "delete" waits for the shim to drop a container; it has 4.5
// seconds in all.
const patience = time.Second

func (s *Service) expect(_ context.Context, r *wire.ConnectRequest) (wire.Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return nil, Failf(ttrpc.Unavailable, "the shim is about to leave")
	}
	s.expected[r.ID] = time.Now().Add(expectation)
	s.keep()
	time.AfterFunc(expectation, s.leaveIfDone)
	return &wire.ConnectResponse{ShimPid: uint32(os.Getpid())}, nil
}

// unexpect is for a container that the command "delete" removes: its create has been given up by
// the client, or never came, or its Delete could not be answered here in time.
func (s *Service) unexpect(_ context.Context, r *wire.ConnectRequest) (wire.Message, error) {
	s.mu.Lock()
	delete(s.expected, r.ID)
	if r.ID == s.first {
		// The shim's address is unknown to all, so it would never be asked to shut down.
		s.first, s.asked = "", true
	}
	s.keep()
	c := s.containers[r.ID]
	s.mu.Unlock()
	if c != nil {
		done := make(chan struct{})
		s.work.do(func() {
			defer close(done)
			c.abandon()
		})
		// The caller then finds nothing left. A create that goes on, in a hook say, it has to end
		// itself.
		select {
		case <-done:
		case <-time.After(patience):
		}
	}
	s.leaveIfDone()
	return &wire.ConnectResponse{ShimPid: uint32(os.Getpid())}, nil
}

// nobodyCame ends a shim that was started for a container which no client has created.
func (s *Service) nobodyCame() {
	s.mu.Lock()
	if s.first != "" {
		s.first, s.asked = "", true
		s.keep()
	}
	s.mu.Unlock()
	s.leaveIfDone()
}

// abandon drops a container as soon as its create, if that is still going on, and its init have
// ended. What the command "delete" has not found to remove, since it was made after, is removed
// here.
func (c *container) abandon() {
	<-c.making
	c.change.Lock()
	defer c.change.Unlock()
	if _, err := c.service.find(c.id); err != nil {
		return // not made after all, or deleted meanwhile
	}
	c.mu.Lock()
	handle, child := c.handle, c.init.child
	c.mu.Unlock()
	if handle != nil {
		release := c.service.Reaper.Hold()
		err := handle.Delete(context.Background(), true)
		release()
		if err != nil {
			c.service.Log("remove container " + c.id + ", which its client has given up: " + err.Error())
		}
	}
	if child != nil {
		<-c.init.done
	}
	c.letGo()
	if err := mounts.Unmount(filepath.Join(c.bundle, "rootfs")); err != nil {
		c.service.Log("unmount the root of " + c.id + ", which its client has given up: " + err.Error())
	}
	c.service.forget(c)
}

// awaitCreate waits for the end of a create that is going on, so that what it makes can be deleted.
func (s *Service) awaitCreate(ctx context.Context, id string) error {
	s.mu.Lock()
	c := s.containers[id]
	s.mu.Unlock()
	if c == nil {
		return nil
	}
	select {
	case <-c.making:
		return nil
	case <-ctx.Done():
		return Failf(ttrpc.DeadlineExceeded, "container %q is still being created: %w", id, ctx.Err())
	}
}
