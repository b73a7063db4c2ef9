package stdio

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/shim/engine"
	"github.com/berth-runtime/berth/shim/keeper"
	"github.com/berth-runtime/berth/shim/reaper"
)

// Open opens what the config names, and waits for the clients of FIFOs.
func Open(ctx context.Context, config Config, r *reaper.Reaper, log func(string)) (_ *IO, err error) {
	s := &IO{config: config, log: log, child: engine.Stdio{Terminal: config.Terminal}, slot: config.Memory.Slot()}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, clientTimeout)
	defer cancel()
	if config.Stdin != "" {
		if err := s.openStdin(ctx); err != nil {
			return nil, fmt.Errorf("stdin: %w", err)
		}
	}
	if err := s.openOutputs(ctx, r); err != nil {
		return nil, err
	}
	stages, err := s.stageFiles()
	if err != nil {
		return nil, err
	}
	s.keep(stages...)
	return s, nil
}

func (s *IO) openStdin(ctx context.Context) error {
	in, err := parse(s.config.Stdin)
	switch {
	case err != nil:
		return err
	case in.scheme == schemeStream:
		err = s.openInStream(ctx, in)
	case in.scheme == schemeFIFO:
		s.stdin, err = openInput(in.path)
	default:
		return fmt.Errorf("%q: only output can be of scheme %s", s.config.Stdin, in.scheme)
	}
	if err != nil || s.config.Terminal {
		return err
	}
	s.child.In, s.inPipe, err = os.Pipe()
	if err != nil {
		return err
	}
	return s.own(s.child.In)
}

func (s *IO) openInStream(ctx context.Context, p place) error {
	id, err := p.stream()
	if err != nil {
		return err
	}
	read, write, err := s.awaited(ctx, id)
	if err != nil {
		return err
	}
	s.links = append(s.links, link{id: id, pipe: write, input: true})
	s.stdin = &input{file: read, stop: func() { s.config.Streams.Stop(id) }}
	return nil
}

func (s *IO) openOutStream(ctx context.Context, p place) (*output, error) {
	id, err := p.stream()
	if err != nil {
		return nil, err
	}
	read, write, err := s.awaited(ctx, id)
	if err != nil {
		return nil, err
	}
	s.links = append(s.links, link{id: id, pipe: read})
	return &output{file: write}, nil
}

// awaited makes the pipe for a stream, and waits for that. A stream that has been awaited is to get
// an end of it.
func (s *IO) awaited(ctx context.Context, id string) (read, write *os.File, err error) {
	if read, write, err = os.Pipe(); err != nil {
		return nil, nil, err
	}
	if err := s.config.Streams.Await(ctx, id); err != nil {
		read.Close()
		write.Close()
		return nil, nil, err
	}
	return read, write, nil
}

// own makes an end of a pipe the process's.
func (s *IO) own(f *os.File) error {
	if err := block(f); err != nil {
		return err
	}
	if s.config.UID == 0 && s.config.GID == 0 {
		return nil
	}
	return f.Chown(s.config.UID, s.config.GID)
}

func (s *IO) openOutputs(ctx context.Context, r *reaper.Reaper) error {
	if s.config.Stdout == "" && s.config.Stderr == "" {
		return nil
	}
	out, err := parse(s.config.Stdout)
	if err != nil {
		return err
	}
	switch out.scheme {
	case schemeBinary, schemeBinaryV2:
		return s.openLogger(ctx, r, out)
	case schemeFile:
		// The one file takes both streams, in the order of their writing.
		return s.openFile(out.path)
	}
	if s.config.Stdout != "" {
		if s.child.Out, err = s.openPipe(ctx, out); err != nil {
			return fmt.Errorf("stdout: %w", err)
		}
	}
	switch {
	case s.config.Terminal, s.config.Stderr == "":
	case s.config.Stderr == s.config.Stdout:
		s.child.Err = s.child.Out
	default:
		errPlace, err := parse(s.config.Stderr)
		if err != nil {
			return err
		}
		if errPlace.scheme != schemeFIFO && errPlace.scheme != schemeStream {
			return fmt.Errorf("stderr %q: only stdout can be of scheme %s, and then takes both", s.config.Stderr, errPlace.scheme)
		}
		if s.child.Err, err = s.openPipe(ctx, errPlace); err != nil {
			return fmt.Errorf("stderr: %w", err)
		}
	}
	return nil
}

// openPipe opens a FIFO or a stream and, unless there is a terminal, makes the
// pipe that leads to it; it gives back the end of that for the process.
func (s *IO) openPipe(ctx context.Context, p place) (file *os.File, err error) {
	var o *output
	if p.scheme == schemeStream {
		o, err = s.openOutStream(ctx, p)
	} else {
		o, err = openOutput(ctx, p.path)
	}
	if err != nil {
		return nil, err
	}
	return s.pipeTo(o)
}

func (s *IO) pipeTo(o *output) (*os.File, error) {
	s.outputs = append(s.outputs, o)
	if s.config.Terminal {
		return nil, nil
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.pipes = append(s.pipes, pipe{read: read, to: o})
	return write, s.own(write)
}

func (s *IO) openFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("stdout: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("stdout: %w", err)
	}
	s.child.Out, err = s.pipeTo(&output{file: f})
	s.child.Err = s.child.Out
	return err
}

// stageFiles gives files that are appended to what they need to be written by a shim that may be
// killed, if there is a keeper. Other files are spliced to.
func (s *IO) stageFiles() (changes []keeper.Change, err error) {
	if s.slot == nil {
		return nil, nil
	}
	for _, o := range s.outputs {
		raw, err := o.file.SyscallConn()
		if err != nil {
			return nil, err
		}
		var st unix.Stat_t
		regular := false
		controlErr := raw.Control(func(fd uintptr) {
			if err = unix.Fstat(int(fd), &st); err != nil {
				return
			}
			var flags int
			if flags, err = unix.FcntlInt(fd, unix.F_GETFL, 0); err != nil || flags&unix.O_APPEND == 0 {
				return
			}
			if regular = st.Mode&unix.S_IFMT == unix.S_IFREG; !regular {
				_, err = unix.FcntlInt(fd, unix.F_SETFL, flags&^unix.O_APPEND)
			}
		})
		if err = errors.Join(controlErr, err); err != nil {
			return nil, fmt.Errorf("stdout: %w", err)
		}
		if regular {
			var change keeper.Change
			if o.stage, change, err = newStage(s.config.Memory); err != nil {
				return nil, fmt.Errorf("stdout: %w", err)
			}
			changes = append(changes, change)
		}
	}
	return changes, nil
}

func (s *IO) openLogger(ctx context.Context, r *reaper.Reaper, p place) (err error) {
	if s.logger, err = startLogger(ctx, r, p, s.config.ID, s.config.Namespace); err != nil {
		return err
	}
	if s.config.Terminal {
		s.outputs = append(s.outputs, &output{file: s.logger.out})
		s.logger.err.Close()
		return nil
	}
	// The process writes straight into the program's pipes.
	s.child.Out, s.child.Err = s.logger.out, s.logger.err
	if err := s.own(s.child.Out); err != nil {
		return err
	}
	return s.own(s.child.Err)
}
