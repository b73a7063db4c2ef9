package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// doctor --node is berth-node's, with its status; without berth-node it says what to install.
func TestNodeDoctor(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	if err := nodeDoctor(false); !errors.Is(err, exec.ErrNotFound) || !strings.Contains(err.Error(), "install it beside berth") {
		t.Errorf("%v", err)
	}
	for script, want := range map[string]int{"#!/bin/sh\n[ \"$*\" = 'doctor --json' ]\n": 0, "#!/bin/sh\nexit 7\n": 7} {
		if err := os.WriteFile(filepath.Join(bin, "berth-node"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		err := nodeDoctor(true)
		var status *exitStatus
		if got := errors.As(err, &status); got != (want != 0) || got && status.code != want {
			t.Errorf("%q: %v, want %d", script, err, want)
		}
	}
}
