package procs

import (
	"errors"
	"os"
	"strconv"
	"testing"
)

func TestStatus(t *testing.T) {
	got, err := Status(os.Getpid(), "Pid", "NoSuchLine", "Threads")
	if err != nil {
		t.Fatal(err)
	}
	if threads, err := strconv.Atoi(got[2]); got[0] != strconv.Itoa(os.Getpid()) || got[1] != "" || err != nil || threads < 1 {
		t.Errorf("%q", got)
	}
	const none = 1 << 30 // beyond the largest pid_max
	if _, err := Status(none, "Pid"); !errors.Is(err, ErrGone) {
		t.Error(err)
	}
}
