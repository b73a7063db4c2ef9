package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/start/entry"
	"github.com/berth-runtime/berth/internal/sys"
	"github.com/berth-runtime/berth/shim/internal/fds"
	"github.com/berth-runtime/berth/shim/reaper"
	"github.com/berth-runtime/berth/shim/sandbox"
	"github.com/berth-runtime/berth/shim/task"
)

// revive makes the shim that was killed, of what it has left in the keeper's memory and of its
// descriptors, all of which are open.
func (s *shim) revive() (err error) {
	code, status, _ := s.memory.Kept()
	if code != sys.CldExited || status != entry.Again {
		s.logger.warn(fmt.Sprintf("the shim was killed or has failed (si_code %d, si_status %d): another one goes on", code, status))
	}
	table := fds.New()
	confirm, err := s.upgraded(table)
	if err != nil {
		return err
	}
	if s.reaper, err = reaper.Prepare(); err != nil {
		return err
	}
	s.reaper.Keep(s.memory)
	s.reaper.Inherit()
	if err := s.moreLikelyVictim(); err != nil {
		return err
	}
	if s.args.DebugSocket != "" {
		if s.debug, err = table.File(debugFD, s.args.DebugSocket); err != nil {
			return err
		}
	}
	config, err := s.assemble()
	if err != nil {
		return err
	}
	if s.listener, err = table.File(listenerFD, s.args.Socket); err != nil {
		return err
	}
	h, err := task.Kept(s.memory, s.args.ID)
	if err != nil {
		return err
	}
	if s.tasks, err = task.TakeOver(config, h, table); err != nil {
		return err
	}
	s.serve()
	box, err := sandbox.Kept(s.memory)
	if err != nil {
		return err
	}
	if err := s.sandboxes.TakeOver(box); err != nil {
		return err
	}
	if err := s.publisher.Inherit(table); err != nil {
		return err
	}
	if err := s.server.Inherit(listenerFD, table); err != nil {
		return err
	}
	// What is in no state: of calls that were under way, and Go's own. A FIFO stays open until such
	// calls have opened it once more, or its other end would see an end.
	var fifos []int
	for _, fd := range entry.Inherited() {
		var st unix.Stat_t
		if table.Has(uint32(fd)) || s.server.Adopt(uint32(fd), table) {
			continue
		}
		if unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO {
			fifos = append(fifos, fd)
			continue
		}
		unix.Close(fd)
	}
	confirm()
	_ = os.WriteFile("/proc/self/comm", []byte(filepath.Base(os.Args[0])), 0)
	s.publisher.Resume()
	s.tasks.Resume()
	s.tasks.Revive()
	s.reaper.Forget()
	s.reaper.Resume()
	s.server.Redone = func() {
		for _, fd := range fifos {
			unix.Close(fd)
		}
		s.tasks.Redone()
	}
	s.server.Resume()
	return nil
}

// moreLikelyVictim makes the shim a better victim of the OOM killer than its keeper, which has
// containerd's score, by one.
func (s *shim) moreLikelyVictim() error {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(os.Getppid()) + "/oom_score_adj")
	if err != nil {
		return fmt.Errorf("read the keeper's oom score: %w", err)
	}
	score, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("read the keeper's oom score: %w", err)
	}
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(min(score+1, 1000))), 0); err != nil {
		return fmt.Errorf("set the shim's oom score: %w", err)
	}
	return nil
}
