package stdio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/shim/reaper"
)

// loggerGrace is how long a logging program has after SIGTERM until SIGKILL.
const loggerGrace = 12 * time.Second

// logger is a running logging program.
type logger struct {
	process *reaper.Child // nil when it had ended before this program came
	// out and err are the writing ends of what it reads as descriptors 3 and 4.
	out, err *os.File
}

// startLogger executes the program of a binary URI by the protocol of
// containerd's logging drivers: descriptor 3 is the output, 4 the errors, and 5
// is closed, or in the second version written to, when the program is ready.
func startLogger(ctx context.Context, r *reaper.Reaper, p place, id, namespace string) (*logger, error) {
	var opened []*os.File
	closeAll := func(files ...*os.File) {
		for _, f := range files {
			f.Close()
		}
	}
	var reads, writes [3]*os.File // output, errors, ready
	for i := range reads {
		var err error
		if reads[i], writes[i], err = os.Pipe(); err != nil {
			closeAll(opened...)
			return nil, fmt.Errorf("pipe for logging program %s: %w", p.path, err)
		}
		opened = append(opened, reads[i], writes[i])
	}
	process, err := execLogger(r, p, id, namespace, []*os.File{reads[0], reads[1], writes[2]})
	closeAll(reads[0], reads[1], writes[2])
	if err == nil {
		if err = awaitReady(ctx, reads[2], p.scheme == schemeBinaryV2); err != nil {
			process.Signal(unix.SIGKILL)
		}
	}
	closeAll(reads[2])
	if err != nil {
		closeAll(writes[0], writes[1])
		return nil, fmt.Errorf("logging program %s: %w", p.path, err)
	}
	return &logger{process: process, out: writes[0], err: writes[1]}, nil
}

func execLogger(r *reaper.Reaper, p place, id, namespace string, files []*os.File) (*reaper.Child, error) {
	argv := []string{p.path}
	for _, pair := range p.query {
		argv = append(argv, pair[0], pair[1])
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	fds := []uintptr{null.Fd(), null.Fd(), null.Fd()}
	for _, f := range files {
		if err := block(f); err != nil {
			return nil, err
		}
		fds = append(fds, f.Fd())
	}
	return r.Start(p.path, argv, &syscall.ProcAttr{
		Env:   []string{"CONTAINER_ID=" + id, "CONTAINER_NAMESPACE=" + namespace},
		Files: fds,
	}, nil)
}

func awaitReady(ctx context.Context, ready *os.File, wantsByte bool) error {
	if deadline, ok := ctx.Deadline(); ok {
		if err := ready.SetReadDeadline(deadline); err != nil {
			return err
		}
	}
	_, err := ready.Read(make([]byte, 1))
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF) && !wantsByte:
		return nil
	case errors.Is(err, io.EOF):
		return errors.New("ended, or closed descriptor 5, before it said that it was ready")
	}
	return fmt.Errorf("wait for it to be ready: %w", err)
}

// stop asks the program to end, which it does by itself when it has read all:
// so it is sent SIGTERM only if the time until quiet has passed.
func (l *logger) stop(quiet <-chan time.Time) {
	select {
	case <-l.process.Done():
		return
	case <-quiet:
	}
	l.process.Signal(unix.SIGTERM)
	select {
	case <-l.process.Done():
	case <-time.After(loggerGrace):
		l.process.Signal(unix.SIGKILL)
	}
}
