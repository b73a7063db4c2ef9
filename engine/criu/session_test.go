package criu

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A criu that not even SIGKILL ends, as it is frozen with the cgroup that it works in, is left.
func TestCloseOfFrozen(t *testing.T) {
	group := "/sys/fs/cgroup/freezer/berth-test-criu-" + strconv.Itoa(os.Getpid())
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skip("needs the freezer of cgroup v1: ", err)
	}
	defer func() {
		if err := os.Remove(group); err != nil {
			t.Error(err)
		}
	}()
	program, images := filepath.Join(t.TempDir(), "criu"), t.TempDir()
	if err := os.WriteFile(program, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := Open(&Start{Program: program, Images: images, Idle: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	pid := s.Pid
	thaw := func() {
		if err := os.WriteFile(group+"/freezer.state", []byte("THAWED"), 0); err != nil {
			t.Error(err)
		}
		_ = unix.Kill(pid, unix.SIGKILL)
		_, _ = unix.Wait4(pid, nil, 0, nil)
	}
	for _, w := range [][2]string{{"cgroup.procs", strconv.Itoa(pid)}, {"freezer.state", "FROZEN"}} {
		if err := os.WriteFile(filepath.Join(group, w[0]), []byte(w[1]), 0); err != nil {
			thaw()
			t.Fatal(err)
		}
	}
	closed := make(chan struct{})
	go func() { s.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Error("it is waited for")
	}
	thaw()
	<-closed
	if err := unix.Kill(pid, 0); !errors.Is(err, unix.ESRCH) {
		t.Errorf("criu is left: %v", err)
	}
}
