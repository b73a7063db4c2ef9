package stdio

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/berth-runtime/berth/shim/internal/fds"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/reaper"
)

// Suspend stops all copies, until Resume. It returns an error, and they are to be resumed all the
// same, where one does not stop in time.
func (s *IO) Suspend(limit time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	end := time.After(limit)
	for _, st := range s.copies() {
		if !st.suspend(end) {
			return fmt.Errorf("the output of %s takes its time", s.config.ID)
		}
	}
	return nil
}

// Resume has the copies go on.
func (s *IO) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.copies() {
		st.resume()
	}
	s.leadOn()
}

// Kept says whether all there is of suspended streams is in the keeper's memory.
func (s *IO) Kept() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.copies() {
		if len(st.rest) > 0 && !st.ended() {
			return false
		}
	}
	return true
}

// Handover writes suspended streams down. Of closed ones there is nothing to be handed on: an exec
// that could not be started has them until it is deleted. A logging program of theirs that has yet
// to end is none of the state's processes.
func (s *IO) Handover(t *fds.Table) *wire.HandoverIO {
	if s.closed {
		return &wire.HandoverIO{Started: s.started, Closed: true}
	}
	h := &wire.HandoverIO{Started: s.started, Console: t.Number(s.console)}
	if s.input == nil || !s.input.ended() { // else it is closed, or is about to be
		h.InPipe = t.Number(s.inPipe)
	}
	if !s.started {
		h.ChildIn, h.ChildOut, h.ChildErr = t.Number(s.child.In), t.Number(s.child.Out), t.Number(s.child.Err)
	}
	for _, l := range s.links {
		h.Links = append(h.Links, &wire.HandoverLink{ID: l.id, Pipe: t.Number(l.pipe), Input: l.input})
	}
	if s.stdin != nil {
		h.In, h.InKeep = t.Number(s.stdin.file), t.Number(s.stdin.keep)
	}
	places := make(map[*output]uint32)
	for i, o := range s.outputs {
		places[o] = uint32(i)
		one := new(wire.HandoverOutput)
		if !o.over {
			one.File, one.Keep = t.Number(o.file), t.Number(o.keep)
			one.Stage = o.stage.handover(t)
		}
		h.Outputs = append(h.Outputs, one)
	}
	piped := make(map[*stream]bool)
	for _, p := range s.pipes {
		if p.stream != nil && p.stream.ended() {
			piped[p.stream] = true
			continue
		}
		one := &wire.HandoverPipe{Read: t.Number(p.read), Output: places[p.to]}
		if p.stream != nil {
			piped[p.stream] = true
			one.Copy = &wire.HandoverCopy{Rest: p.stream.rest}
		}
		h.Pipes = append(h.Pipes, one)
	}
	for _, st := range s.streams {
		if !piped[st] && !st.ended() { // the terminal's
			h.ConsoleCopy = &wire.HandoverCopy{Rest: st.rest}
		}
	}
	if s.input != nil && !s.input.ended() {
		h.InCopy = &wire.HandoverCopy{Rest: s.input.rest}
	}
	if s.logger != nil {
		h.Logger = new(wire.HandoverLogger) // its pipes are the child's, or an output
		if p := s.logger.process; p != nil && !p.Ended() {
			h.Logger.Pid = uint32(p.Pid)
		}
	}
	return h
}

// TakeOver makes the streams that Handover has written down. They are suspended.
func TakeOver(h *wire.HandoverIO, config Config, t *fds.Table, r *reaper.Reaper, log func(string)) (*IO, error) {
	s := &IO{config: config, log: log, started: h.Started, closed: h.Closed, slot: config.Memory.At(h.Slot)}
	s.child.Terminal = config.Terminal
	var errs []error
	file := func(n uint32, what string) *os.File {
		f, err := t.File(n, what)
		if err != nil {
			errs = append(errs, err)
		}
		return f
	}
	s.child.In, s.child.Out, s.child.Err = file(h.ChildIn, "stdin"), file(h.ChildOut, "stdout"), file(h.ChildErr, "stderr")
	s.inPipe, s.console = file(h.InPipe, "stdin"), file(h.Console, "terminal")
	if in := file(h.In, config.Stdin); in != nil || h.InKeep != 0 {
		s.stdin = &input{file: in, keep: file(h.InKeep, config.Stdin)}
		if p, err := parse(config.Stdin); err == nil && p.scheme == schemeStream {
			id, err := p.stream()
			errs = append(errs, err)
			s.stdin.stop = func() { config.Streams.Stop(id) }
		}
	}
	for _, o := range h.Outputs {
		s.outputs = append(s.outputs, &output{
			file: file(o.File, config.Stdout), keep: file(o.Keep, config.Stdout), stage: takeOverStage(o.Stage, config.Memory, file),
		})
	}
	for _, p := range h.Pipes {
		read := file(p.Read, "stdout")
		if int(p.Output) >= len(s.outputs) || read == nil {
			return nil, errors.New("a pipe in the state leads nowhere")
		}
		s.pipes = append(s.pipes, pipe{read: read, to: s.outputs[p.Output]})
	}
	for _, l := range h.Links {
		s.links = append(s.links, link{id: l.ID, pipe: file(l.Pipe, "stream "+l.ID), input: l.Input})
	}
	if l := h.Logger; l != nil {
		s.logger = new(logger)
		if l.Pid != 0 {
			var err error
			if s.logger.process, err = r.Adopt(int(l.Pid), nil); err != nil {
				errs = append(errs, err)
			}
		}
	}
	if err := errors.Join(errs...); err != nil || !s.started || s.closed {
		return s, err
	}
	s.lay(h.ConsoleCopy == nil, h.InCopy == nil)
	for i, p := range h.Pipes {
		s.pipes[i].stream.rest = rest(p.Copy)
	}
	if h.ConsoleCopy != nil && len(s.streams) > 0 {
		s.streams[0].rest = rest(h.ConsoleCopy)
	}
	if s.input != nil {
		s.input.rest = rest(h.InCopy)
	}
	for _, st := range s.copies() {
		st.state.Store(stopped)
	}
	return s, nil
}

func rest(c *wire.HandoverCopy) []byte {
	if c == nil {
		return nil
	}
	return c.Rest
}
