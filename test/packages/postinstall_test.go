package packages

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The shims that run are upgraded when another version of the package has come, and not by its
// first.
func TestPostinstall(t *testing.T) {
	if _, err := os.Stat("/etc/berth/keep-shims"); err == nil {
		t.Skip("this machine keeps its shims: /etc/berth/keep-shims")
	}
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"dpkg, new", []string{"configure", ""}, ""},
		{"dpkg, upgraded", []string{"configure", "0.1.0-1"}, "-all -in-place upgrade\n"},
		{"dpkg, taken back", []string{"abort-remove"}, ""},
		{"rpm, new", []string{"1"}, ""},
		{"rpm, upgraded", []string{"2"}, "-all -in-place upgrade\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			said := filepath.Join(dir, "said")
			// It fails as one that some shims could not be upgraded by, which must not fail the
			// installation.
			if err := os.WriteFile(filepath.Join(dir, "containerd-shim-berth-v2"), []byte("#!/bin/sh\necho \"$*\" > "+said+"\nexit 1\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("../../build/packaging/postinstall", tc.args...)
			cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
			if got, _ := os.ReadFile(said); string(got) != tc.want {
				t.Errorf("the shim is called with %q, want %q", got, tc.want)
			}
		})
	}
}
