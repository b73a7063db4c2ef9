package stdio

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/shim/keeper"
)

// output is where a stream's bytes go: the end that is written and, for a FIFO,
// the reading end that keeps it alive while no client has it open.
type output struct {
	file *os.File
	keep *os.File
	// stage is what a file that is appended to has with a keeper.
	stage *stage
	over  bool // closed, or about to be
}

func (o *output) close() {
	if o.file != nil {
		o.file.Close()
	}
	if o.keep != nil {
		o.keep.Close()
	}
	o.stage.close()
}

// dropped is the change by which nothing of an output is kept.
func (o *output) dropped() keeper.Change {
	if o.stage == nil {
		return keeper.Change{}
	}
	return keeper.Change{Slot: o.stage.Slot()}
}

func isFIFO(path string) (bool, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return false, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return st.Mode&unix.S_IFMT == unix.S_IFIFO, nil
}

// openOutput opens a FIFO for writing. It waits, as long as ctx allows, for the
// client to open the other end: a fast process might otherwise have written,
// and the FIFO have lost its last opener, before the client comes to read.
func openOutput(ctx context.Context, path string) (*output, error) {
	fifo, err := isFIFO(path)
	if err != nil {
		return nil, err
	}
	if !fifo {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return nil, err
		}
		return &output{file: f}, nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ENXIO) { // no reader yet
		file, err = awaitReader(ctx, path)
	}
	if err != nil {
		return nil, err
	}
	keep, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		file.Close()
		return nil, err
	}
	return &output{file: file, keep: keep}, nil
}

// awaitReader opens a FIFO for writing when a process has it open for reading. Only an open that
// blocks can wait for that, so a thread does it; when ctx ends first, the open is let go by a
// reader of our own. Both go by a descriptor of the FIFO: a client that gives up removes its name,
// and the thread would wait for ever. What that open gives is kept: a reader that saw it closed
// would take that for the end of the output.
func awaitReader(ctx context.Context, path string) (*os.File, error) {
	place, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(place)
	again := "/proc/self/fd/" + strconv.Itoa(place)
	type result struct {
		fd  int
		err error
	}
	opened := make(chan result, 1)
	go func() {
		for {
			fd, err := unix.Open(again, unix.O_WRONLY|unix.O_CLOEXEC, 0)
			if err != unix.EINTR {
				opened <- result{fd, err}
				return
			}
		}
	}()
	select {
	case r := <-opened:
		if r.err == nil {
			r.err = unix.SetNonblock(r.fd, true)
		}
		if r.err != nil {
			if r.fd >= 0 {
				unix.Close(r.fd)
			}
			return nil, &os.PathError{Op: "open", Path: path, Err: r.err}
		}
		return os.NewFile(uintptr(r.fd), path), nil
	case <-ctx.Done():
		if fd, err := unix.Open(again, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err == nil {
			if r := <-opened; r.err == nil {
				unix.Close(r.fd)
			}
			unix.Close(fd)
		}
		return nil, fmt.Errorf("wait for a reader of %s: %w", path, ctx.Err())
	}
}

// input is where a process's standard input comes from. keep is a writing end
// of the FIFO: the process sees the end of its input only when that is closed.
type input struct {
	file *os.File
	keep *os.File
	stop func() // of a stream: take no more from it
}

func (i *input) close() {
	if i.file != nil {
		i.file.Close()
	}
	if i.keep != nil {
		i.keep.Close()
	}
}

func openInput(path string) (*input, error) {
	fifo, err := isFIFO(path)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	in := &input{file: file}
	if fifo {
		if in.keep, err = os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0); err != nil {
			in.close()
			return nil, err
		}
	}
	return in, nil
}
