package integration

import (
	"os"
	"syscall"
	"testing"
)

// A client that does not read stops the process that writes, and nothing else in
// the same shim; nor does it keep the container from being deleted.
func TestStuckReader(t *testing.T) {
	withReleases(t, func(t *testing.T, d *daemon) {
		path := d.Dir + "/stuck"
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		reader, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		stuck := d.define("", sh("while :; do echo 'a line that nobody reads'; done"))
		if err := stuck.create(stdio{out: path}); err != nil {
			t.Fatal(err)
		}
		if err := stuck.start(); err != nil {
			t.Fatal(err)
		}
		other := d.define("", annotation(groupAnnotation, stuck.id), sh("echo other"))
		s := d.pipes(other.id, false)
		if err := other.create(s); err != nil {
			t.Fatal(err)
		}
		if shims := d.Shims(); len(shims) != 1 {
			t.Fatalf("%d shims", len(shims))
		}
		if err := other.start(); err != nil {
			t.Fatal(err)
		}
		if got := s.output[0].wait(); got != "other\n" {
			t.Errorf("output of another container: %q", got)
		}
		e := d.pipes("e", false)
		if err := stuck.exec("e", e, "echo", "exec"); err != nil {
			t.Fatal(err)
		}
		if got := e.output[0].wait(); got != "exec\n" {
			t.Errorf("output of an exec: %q", got)
		}
		other.remove()
		if err := stuck.kill(9); err != nil {
			t.Error(err)
		}
		if got := stuck.wait(""); got != 137 {
			t.Errorf("status %d", got)
		}
		stuck.remove()
	})
}
