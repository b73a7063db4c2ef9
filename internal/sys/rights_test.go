package sys

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReceivedDescriptor(t *testing.T) {
	var fds []int
	for range 3 {
		fd, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		fds = append(fds, fd)
	}
	defer unix.Close(fds[0])
	open := func(fd int) bool {
		_, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		return err == nil
	}
	if got := ReceivedDescriptor(unix.UnixRights(fds...)); got != fds[0] || !open(fds[0]) {
		t.Errorf("%d of %v, open: %v", got, fds, open(fds[0]))
	}
	if open(fds[1]) || open(fds[2]) {
		t.Error("those beyond the first stay open")
	}
	for _, none := range [][]byte{nil, {1}, unix.UnixCredentials(&unix.Ucred{})} {
		if got := ReceivedDescriptor(none); got != -1 {
			t.Errorf("%v has descriptor %d", none, got)
		}
	}
}
