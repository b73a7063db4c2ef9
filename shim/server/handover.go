package server

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/berth-runtime/berth/internal/escape"
	"github.com/berth-runtime/berth/internal/start/entry"
	"github.com/berth-runtime/berth/internal/sys"
	"github.com/berth-runtime/berth/shim/internal/fds"
	"github.com/berth-runtime/berth/shim/internal/guard"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/reaper"
	"github.com/berth-runtime/berth/shim/task"
)

// The formats of the state. format is raised when there is something new in it. A program of an
// earlier format may still take it, as far back as least, if what is new can be lost; so least is
// raised only when it cannot.
const (
	format = 4
	least  = 1
	// leastKept is least for what is in a keeper's memory, and leastStreams where there are streams
	// over the socket, or what is to be led to them.
	leastKept    = 2
	leastStreams = 4
	// oldest is the earliest that this program understands.
	oldest = 1
)

// mostReason is how much of the reason is told for which a program has not taken over.
const mostReason = 2048

// understood is what a program prints that can take a state.
const understood = "the state is understood\n"

// handover writes a suspended shim down.
func (s *shim) handover(program string, t *fds.Table) *wire.Handover {
	h := &wire.Handover{
		Format: format, Least: least, Version: s.config.Version, Program: program,
		Server: s.server.Handover(t), Events: s.publisher.Handover(t), Tasks: s.tasks.Handover(t), Box: s.sandboxes.Handover(),
		Debug: t.Number(s.debug),
	}
	if s.memory != nil {
		h.Kept, h.Least = true, leastKept
	}
	if streams(h) {
		h.Least = leastStreams
	}
	return h
}

// streams says whether a state has any over the socket.
func streams(h *wire.Handover) bool {
	for _, c := range h.Server.Conns {
		if len(c.Streams) > 0 {
			return true
		}
	}
	for _, c := range h.Tasks.Containers {
		for _, p := range c.Processes {
			if p.IO != nil && len(p.IO.Links) > 0 {
				return true
			}
		}
	}
	return false
}

// unclaimed gives a busy error when there is a process that the state does not speak of: a logging
// program that is being ended, say.
func (s *shim) unclaimed(h *wire.Handover) error {
	var claimed []uint32
	if h.Box != nil {
		claimed = append(claimed, h.Box.Pid)
	}
	for _, c := range h.Tasks.Containers {
		for _, p := range c.Processes {
			claimed = append(claimed, p.Pid)
			if p.IO != nil && p.IO.Logger != nil {
				claimed = append(claimed, p.IO.Logger.Pid)
			}
		}
	}
	for _, pid := range s.reaper.Known() {
		if !slices.Contains(claimed, uint32(pid)) {
			return busy{fmt.Errorf("the shim is busy with process %d", pid)}
		}
	}
	return nil
}

// probe asks another program whether it understands the state.
func (s *shim) probe(program string, state *os.File) error {
	out, err := sys.MemoryFile("berth-shim-answer", nil)
	if err != nil {
		return err
	}
	defer out.Close()
	status, err := s.reaper.Probe(program, []string{program, "-check-state"}, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{state.Fd(), out.Fd(), out.Fd()},
	}, probeLimit)
	if err != nil {
		return fmt.Errorf("ask the new program whether it understands the state: %w", err)
	}
	const most = 4096
	said, err := io.ReadAll(io.NewSectionReader(out, 0, most))
	if err != nil {
		return err
	}
	if status != 0 || string(said) != understood {
		return fmt.Errorf("%s cannot take over: it ends with status %d and says %q", program, status, strings.TrimSpace(string(said)))
	}
	return nil
}

// CheckState says whether this program understands the state that another one has written.
func CheckState(state *os.File, out io.Writer) error {
	h, err := readState(state)
	if err != nil {
		return err
	}
	if h.Kept && !entry.CanKeep() {
		return errors.New("the shim has a keeper, and this program was built without the entry that a keeper is part of (use build/scripts/build, on amd64)")
	}
	_, err = io.WriteString(out, understood)
	return err
}

// readState reads a state, without moving the place that others read at.
func readState(f *os.File) (*wire.Handover, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.NewSectionReader(f, 0, info.Size()))
	if err != nil {
		return nil, fmt.Errorf("read the state: %w", err)
	}
	h := new(wire.Handover)
	if err := wire.Unmarshal(b, h); err != nil {
		return nil, fmt.Errorf("read the state: %w", err)
	}
	if h.Least > format || h.Format < oldest {
		return nil, fmt.Errorf("the state of version %s has format %d, which formats from %d on understand: this program knows %d to %d",
			h.Version, h.Format, h.Least, oldest, format)
	}
	if h.Server == nil || h.Tasks == nil {
		return nil, errors.New("the state has no containers, or no socket")
	}
	return h, nil
}

// succeed makes the shim that the program before this one has written down, or goes back to that.
func (s *shim) succeed() error {
	table := fds.New()
	var back sync.Mutex // held to go back, and for good once it is too late for that
	giveBack := func(why error) error {
		back.Lock()
		defer back.Unlock() // there is no way back: what is late may still come to its end
		if s.args.Undone != "" {
			return fmt.Errorf("no program takes this shim over any more: %w", why)
		}
		return s.goBack(table, why)
	}
	var late *time.Timer
	if s.args.Undone == "" { // else there is nothing better than to wait
		late = time.AfterFunc(succeedLimit, func() {
			s.logger.warn(giveBack(fmt.Errorf("it takes longer than %s", succeedLimit)).Error())
		})
	}
	var h *wire.Handover
	if err := guard.Do(s.logger.warn, func() (err error) {
		h, err = s.inherit(table)
		return err
	}); err != nil {
		return giveBack(err)
	}
	back.Lock()
	if late != nil {
		late.Stop()
	}
	// From here on there is no way back: what has come is read, and what has ended is reaped.
	u := &upgrade{done: make(chan struct{}), answer: &wire.UpgradeResponse{From: h.Version, To: s.config.Version}}
	if s.args.Undone != "" {
		u.err = errors.New("the new program could not take over: " + s.args.Undone)
		s.logger.warn("not upgraded: " + u.err.Error())
	} else {
		s.logger.info("upgraded from version " + h.Version + " to " + s.config.Version)
	}
	s.upgrades.last = u
	close(u.done)
	for _, f := range s.handed(table) {
		f.Close()
	}
	// The name in ps(1): after a way back it would be the number of a descriptor.
	_ = os.WriteFile("/proc/self/comm", []byte(filepath.Base(os.Args[0])), 0)
	s.resume()
	return nil
}

// inherit makes all parts, and does nothing that the program before this one could not do once
// more.
func (s *shim) inherit(table *fds.Table) (*wire.Handover, error) {
	handed := s.handed(table)
	if len(handed) != 2 {
		return nil, fmt.Errorf("flag -take-over is %q: the state and the program before are two descriptors", s.args.TakeOver)
	}
	h, err := readState(handed[0])
	if err != nil {
		return nil, err
	}
	if s.reaper, err = reaper.Prepare(); err != nil {
		return nil, err
	}
	if s.debug, err = table.File(h.Debug, s.args.DebugSocket); err != nil {
		return nil, err
	}
	config, err := s.assemble()
	if err != nil {
		return nil, err
	}
	if s.listener, err = table.File(h.Server.Listener, s.args.Socket); err != nil {
		return nil, err
	}
	if s.tasks, err = task.TakeOver(config, h.Tasks, table); err != nil {
		return nil, err
	}
	s.serve()
	if err := s.sandboxes.TakeOver(h.Box); err != nil {
		return nil, err
	}
	if err := s.publisher.TakeOver(h.Events, table); err != nil {
		return nil, err
	}
	return h, s.server.TakeOver(h.Server, table)
}

// handed are the state and the program before this one.
func (s *shim) handed(table *fds.Table) (files []*os.File) {
	for _, word := range strings.Split(s.args.TakeOver, ",") {
		n, err := strconv.ParseUint(word, 10, 31)
		if err != nil {
			return nil
		}
		f, err := table.File(uint32(n), "descriptor of -take-over")
		if err != nil || f == nil {
			return nil
		}
		files = append(files, f)
	}
	return files
}

// goBack executes the program before this one again, which finds all as it has left it. It returns
// only if that fails.
func (s *shim) goBack(table *fds.Table, why error) error {
	handed := s.handed(table)
	if len(handed) != 2 {
		return why
	}
	program := os.Args[0]
	if h, err := readState(handed[0]); err == nil && h.Program != "" {
		program = h.Program
	}
	before := "/proc/self/fd/" + strconv.Itoa(int(table.Number(handed[1])))
	// An argument has no room for all that an error may quote (execve(2): 128 KiB, and no zero
	// bytes).
	reason := escape.Message(why.Error())
	reason = strings.ToValidUTF8(reason[:min(len(reason), mostReason)], "")
	argv := append(s.args.Server(program), "-take-over", s.args.TakeOver, "-undone", reason)
	if err := execute(before, argv, table, s.signals); err != nil {
		return fmt.Errorf("%w, and there is no way back: %w", why, err)
	}
	return nil
}
