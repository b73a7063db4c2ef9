package events

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/berth-runtime/berth/internal/sys"
	"github.com/berth-runtime/berth/shim/internal/fds"
	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/reaper"
)

// binary is containerd's own program, whose command "publish" takes an event on its standard input.
type binary struct {
	path    string
	address string // of containerd
	reaper  *reaper.Reaper
	failed  int // times in a row
	most    int // of these until the event is dropped
}

// mostFailures is how often the program may fail with one event, about half a minute of pauses.
// Whether containerd is away or refuses the event, its status does not tell.
const mostFailures = 20

func (b *binary) forward(e *queued) error {
	err := b.publish(e.Envelope)
	if err == nil {
		b.failed = 0
		return nil
	}
	if b.failed++; b.failed == b.most {
		b.failed = 0
		return &ttrpc.Error{Code: ttrpc.InvalidArgument, Text: err.Error(), Cause: err}
	}
	return err
}

// It cannot be interrupted: suspend waits for the program that is under way.
func (b *binary) suspend()                                        {}
func (b *binary) resume()                                         {}
func (b *binary) handover(*wire.HandoverEvents, *fds.Table)       {}
func (b *binary) takeOver(*wire.HandoverEvents, *fds.Table) error { return nil }

func (b *binary) publish(e *wire.Envelope) error {
	event, err := sys.MemoryFile("event", wire.Marshal(e.Event))
	if err != nil {
		return err
	}
	defer event.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	argv := []string{b.path, "--address", b.address, "publish", "--topic", e.Topic, "--namespace", e.Namespace}
	path, err := reaper.LookPath(b.path)
	if err != nil {
		return err
	}
	child, err := b.reaper.Start(path, argv, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{event.Fd(), null.Fd(), null.Fd()}}, nil)
	if err != nil {
		return err
	}
	if exit := child.Wait(); exit.Status != 0 {
		return fmt.Errorf("%s ended with status %d", strings.Join(argv, " "), exit.Status)
	}
	return nil
}
