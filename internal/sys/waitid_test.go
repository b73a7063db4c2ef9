package sys

import (
	"os"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestWaitIDTellsStatusesAndSignals(t *testing.T) {
	if unsafe.Sizeof(childInfo{}) != unsafe.Sizeof(unix.Siginfo{}) {
		t.Fatalf("childInfo has %d bytes, siginfo_t %d", unsafe.Sizeof(childInfo{}), unsafe.Sizeof(unix.Siginfo{}))
	}
	for _, tc := range []struct {
		script string
		code   int32
		status int32
	}{
		{"exit 0", CldExited, 0},
		{"exit 200", CldExited, 200},
		{"kill -9 $$", CldKilled, 9},
		{"kill -15 $$", CldKilled, 15},
	} {
		pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", tc.script}, &syscall.ProcAttr{Env: os.Environ()})
		if err != nil {
			t.Fatal(err)
		}
		const pPid = 1
		peek, err := WaitID(pPid, pid, unix.WNOWAIT)
		if err != nil {
			t.Fatal(err)
		}
		got, err := WaitID(pPid, pid, 0)
		if err != nil {
			t.Fatal(err)
		}
		if want := (ChildExit{pid, tc.code, tc.status}); got != want || peek != want {
			t.Errorf("%s: got %+v, peeked %+v, want %+v", tc.script, got, peek, want)
		}
		if _, err := WaitID(pPid, pid, unix.WNOHANG); err != unix.ECHILD {
			t.Errorf("waiting again: %v", err)
		}
	}
}
