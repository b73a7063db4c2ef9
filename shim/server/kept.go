package server

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/berth-runtime/berth/internal/start/entry"
	"github.com/berth-runtime/berth/shim/internal/fds"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/keeper"
)

// leaveToKeeper ends this process, which is suspended, for the keeper to execute another program.
// It returns only if that cannot be.
func (s *shim) leaveToKeeper(program string, undo uint32) error {
	if !s.tasks.Keep() {
		return busy{errors.New("the shim is busy with input to a terminal")}
	}
	s.sandboxes.Keep()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range open {
		if fd, err := strconv.ParseUint(e.Name(), 10, 31); err == nil {
			s.memory.Holds(uint32(fd))
		}
	}
	note := s.memory.Slot()
	note.Put(keeper.Upgrade, wire.Marshal(&wire.KeptUpgrade{From: s.config.Version, Undo: undo}))
	if err := s.memory.Next(program, "/proc/self/fd/"+strconv.Itoa(int(undo))); err != nil {
		note.Drop()
		return err
	}
	os.Exit(entry.Again)
	return nil
}

// upgraded takes note of an upgrade in the program that has been executed for it, or to undo it.
// confirm is to be called when that has taken over.
func (s *shim) upgraded(table *fds.Table) (confirm func(), err error) {
	stage := s.memory.Stage()
	var late *time.Timer
	if stage == entry.StageTried {
		late = time.AfterFunc(succeedLimit, func() {
			s.logger.warn(fmt.Sprintf("the new program could not take over: it takes longer than %s", succeedLimit))
			os.Exit(1) // the keeper executes the one before
		})
	}
	var undo *os.File
	var k wire.KeptUpgrade
	pieces := s.memory.Pieces(keeper.Upgrade)
	for _, p := range pieces {
		if err := wire.Unmarshal(p.Data, &k); err != nil {
			return nil, fmt.Errorf("read of the upgrade: %w", err)
		}
		if undo, err = table.File(k.Undo, "the program before"); err != nil {
			return nil, err
		}
	}
	return func() {
		if late != nil {
			late.Stop()
		}
		s.memory.Confirm()
		for _, p := range pieces {
			p.Drop()
		}
		if undo != nil {
			undo.Close()
		}
		if stage == entry.StageNone {
			return
		}
		u := &upgrade{done: make(chan struct{}), answer: &wire.UpgradeResponse{From: k.From, To: s.config.Version}}
		if stage == entry.StageBack {
			u.err = errors.New("the new program could not take over, and this one has again")
			s.logger.warn("not upgraded: " + u.err.Error())
		} else {
			s.logger.info("upgraded from version " + k.From + " to " + s.config.Version)
		}
		s.upgrades.last = u
		close(u.done)
	}, nil
}
