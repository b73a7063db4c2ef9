package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/start/entry"
	"github.com/berth-runtime/berth/internal/sys"
	"github.com/berth-runtime/berth/shim/internal/fds"
	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/task"
)

const (
	// quietLimit is how long the calls that are under way, and what else has to come to a point
	// where it can be written down, may take each time. No call is answered meanwhile.
	quietLimit = time.Second
	// retryPause and retryLimit are for a shim that is busy with what takes longer, such as a hook.
	retryPause = 300 * time.Millisecond
	retryLimit = 30 * time.Second
	// probeLimit is how long the new program may take to say that it understands the state, and
	// succeedLimit to make a shim of it.
	probeLimit   = 5 * time.Second
	succeedLimit = 5 * time.Second
)

// upgrade is one that has been asked for.
type upgrade struct {
	program string
	until   time.Time // when it is given up
	done    chan struct{}
	answer  *wire.UpgradeResponse // when done is closed, or
	err     error
}

// upgrades are the one that is under way and, when there is none, the last one.
type upgrades struct {
	mu      sync.Mutex
	current *upgrade
	last    *upgrade
	wanted  chan *upgrade
}

// busy is the error of a shim that can be upgraded a little later.
type busy struct{ error }

func (b busy) Unwrap() error { return b.error }

// upgrade is the call. It is interrupted by what it brings about, and answered by the program that
// serves then.
func (s *shim) upgrade(ctx context.Context, r *wire.UpgradeRequest) (wire.Message, error) {
	var u *upgrade
	if ttrpc.Resumed(ctx) {
		s.upgrades.mu.Lock()
		if u = s.upgrades.current; u == nil {
			u = s.upgrades.last
		}
		s.upgrades.mu.Unlock()
	}
	if u == nil {
		u = s.want(r.Program)
	}
	select {
	case <-u.done:
		if u.err != nil {
			return nil, task.Failf(ttrpc.FailedPrecondition, "%w", u.err)
		}
		return u.answer, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// want has the shim upgraded to a program, "" for the one that is now where its own was, or gives
// what is under way.
func (s *shim) want(program string) *upgrade {
	s.upgrades.mu.Lock()
	defer s.upgrades.mu.Unlock()
	u := s.upgrades.current
	if u == nil {
		u = &upgrade{program: program, until: time.Now().Add(retryLimit), done: make(chan struct{})}
		s.upgrades.current = u
		s.upgrades.wanted <- u
	}
	return u
}

// try takes the program that is wanted. Unless that succeeds, and then it does not return, it gives
// when to try again, if so.
func (s *shim) try() (again <-chan time.Time) {
	s.upgrades.mu.Lock()
	u := s.upgrades.current
	s.upgrades.mu.Unlock()
	if u == nil {
		return nil
	}
	err := s.replace(u)
	if errors.As(err, new(busy)) && time.Now().Before(u.until) {
		return time.After(retryPause)
	}
	s.logger.warn("not upgraded: " + err.Error())
	u.err = err
	s.conclude(u)
	return nil
}

func (s *shim) conclude(u *upgrade) {
	s.upgrades.mu.Lock()
	defer s.upgrades.mu.Unlock()
	s.upgrades.current, s.upgrades.last = nil, u
	close(u.done)
}

// suspend brings everything to a halt, or gives a busy error and has all go on as before.
func (s *shim) suspend() error {
	if err := s.server.Suspend(quietLimit); err != nil {
		return busy{err}
	}
	err := s.tasks.Settled(quietLimit)
	if err == nil {
		s.reaper.Suspend()
		if err = s.tasks.Suspend(quietLimit); err == nil {
			if s.publisher.Suspend(quietLimit) {
				return nil
			}
			err = errors.New("the shim is busy with an event")
			s.tasks.Resume()
		}
		s.reaper.Resume()
	}
	s.server.Resume()
	return busy{err}
}

// resume has everything go on: after suspend, or in the program that has taken over.
func (s *shim) resume() {
	s.publisher.Resume()
	s.tasks.Resume()
	s.reaper.Resume()
	s.server.Resume()
}

// replace executes another program in the place of this one. It returns only if that could not be
// done.
func (s *shim) replace(u *upgrade) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	old := program
	if u.program != "" {
		if program = u.program; !filepath.IsAbs(program) {
			return fmt.Errorf("program %q is no absolute path", program)
		}
	}
	// Neither the new program nor this one, if it comes back, would go without them.
	for _, socket := range []string{s.args.Socket, s.args.DebugSocket} {
		if err := unix.Access(socket, unix.F_OK); socket != "" && err != nil {
			return fmt.Errorf("the shim's own socket %s: %w", socket, err)
		}
	}
	if err := s.suspend(); err != nil {
		return err
	}
	defer s.resume()
	table := fds.New()
	h := s.handover(old, table)
	if err := s.unclaimed(h); err != nil {
		return err
	}
	state, err := sys.SealedFile("berth-shim-state", wire.Marshal(h))
	if err != nil {
		return err
	}
	defer state.Close()
	if err := s.probe(program, state); err != nil {
		return err
	}
	// What is executed now stays to be gone back to, whatever becomes of its file.
	undo, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer undo.Close()
	if s.memory != nil {
		return s.leaveToKeeper(program, table.Number(undo))
	}
	argv := append(s.args.Server(program), "-take-over", strconv.Itoa(int(table.Number(state)))+","+strconv.Itoa(int(table.Number(undo))))
	if err := execute(program, argv, table, s.signals); err != nil {
		return fmt.Errorf("execute %s: %w", program, err)
	}
	return nil
}

// execute executes a program that keeps the descriptors of a table.
func execute(program string, argv []string, table *fds.Table, signals chan os.Signal) error {
	if err := table.Keep(true); err != nil {
		return err
	}
	// Until the new program has its handlers, a signal to the old one is not to end it. What is
	// ignored stays so over an execve; Go takes SIGTERM and SIGUSR1 up again at once, and only
	// SIGTERM is deadly there, as it was meant.
	signal.Ignore(served...)
	runtime.LockOSThread()
	entry.Restore()
	// Where it fails, the soft limit of open files stays what our caller gave us, which Go raises
	// for itself. That is what our children are to have: raised again, it would be passed on.
	err := syscall.Exec(program, argv, os.Environ())
	runtime.UnlockOSThread()
	signal.Notify(signals, served...)
	return errors.Join(err, table.Keep(false))
}
