//go:build !amd64 && !arm64

package sys

import (
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// CatchSignals makes signals readable: each one that comes is a byte with its
// number in the pipe whose reading end is returned, which does not block.
func CatchSignals(signals ...unix.Signal) (int, error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return -1, fmt.Errorf("make a pipe for signals: %w", err)
	}
	caught = make(chan os.Signal, 128)
	for _, s := range signals {
		signal.Notify(caught, s)
	}
	go func() {
		for s := range caught {
			if number, ok := s.(unix.Signal); ok {
				_, _ = unix.Write(ends[1], []byte{byte(number)})
			}
		}
	}()
	return ends[0], nil
}

var caught chan os.Signal

// DefaultSignal puts a caught signal back to what it does by default, until again is called.
func DefaultSignal(s unix.Signal) (again func(), err error) {
	signal.Reset(s)
	return func() { signal.Notify(caught, s) }, nil
}
