//go:build amd64 || arm64

package sys

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	_ "unsafe" // for go:linkname

	"golang.org/x/sys/unix"
)

// A child that is cloned into a cgroup which is frozen at that moment stands still before
// its execve, and so do we. Whoever may write to that cgroup can bring it about.

// usual is within what time a child has executed its program, on a busy machine too.
const usual = 100 * time.Millisecond

// A vforkGuard ends a child that stands still for too long.
type vforkGuard struct {
	b     *vforkBlock
	await func(done int) error
	timer *time.Timer
	ended chan struct{} // closed by watch

	mu    sync.Mutex
	over  bool // the child has executed its program, or ended
	event int  // to be read when it is; -1 until somebody waits for that
	err   error
}

func newVforkGuard(b *vforkBlock, await func(done int) error) *vforkGuard {
	g := &vforkGuard{b: b, await: await, ended: make(chan struct{}), event: -1}
	g.timer = time.AfterFunc(usual, g.watch)
	return g
}

func (g *vforkGuard) watch() {
	defer close(g.ended)
	g.mu.Lock()
	over, event := g.over, -1
	if !over {
		event, _ = unix.Eventfd(0, unix.EFD_CLOEXEC)
		g.event = event
	}
	g.mu.Unlock()
	if over {
		return
	}
	err := g.await(event)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.event = -1
	unix.Close(event)
	// The kernel has stored it before the child could do anything.
	if pidfd := atomic.LoadInt32(&g.b.pidfd); err != nil && !g.over && pidfd >= 0 {
		g.err = err
		_ = unix.PidfdSendSignal(int(pidfd), unix.SIGKILL, nil, 0)
	}
}

// end is called when the child has executed its program, or ended: the error is why it
// was made to.
func (g *vforkGuard) end() error {
	g.mu.Lock()
	g.over = true
	if g.event >= 0 {
		_, _ = unix.Write(g.event, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
	g.mu.Unlock()
	if !g.timer.Stop() {
		<-g.ended
	}
	if g.err == nil {
		return nil
	}
	_, _ = WaitID(unix.P_PIDFD, int(g.b.pidfd), 0)
	unix.Close(int(g.b.pidfd))
	return fmt.Errorf("clone3: %w", g.err)
}

// vforkGuarded is vfork as a call that may take long: Go's scheduler runs others on our
// processor meanwhile, of which the shim has one, and so runs the guard.
//
//go:nosplit
func vforkGuarded(b *vforkBlock) int {
	entersyscall()
	pid := vfork(b)
	exitsyscall()
	return pid
}

// As package syscall has them, for Syscall. They fetch their caller's registers, so
// nothing may stand between.
//
//go:linkname entersyscall runtime.entersyscall
func entersyscall()

//go:linkname exitsyscall runtime.exitsyscall
func exitsyscall()
