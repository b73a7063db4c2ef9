package integration

import (
	"strings"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// A box that is deleted while its command stays with it goes whole, though the others in it end a
// moment after its command.
func TestBoxDeletedByForce(t *testing.T) {
	b := harness.New(t)
	for range 10 {
		out, w := b.Pipe()
		c := box(b, "--", "/bin/sh", "-c", "sleep 100000 & sleep 100000 & echo up; sleep 100000")
		c.Stdout = w
		run := c.Start()
		w.Close()
		out.Until("up\n")
		name := strings.TrimSpace(b.Berth("list", "-q").OK(t).Stdout)
		if r := b.Berth("delete", "--force", name).OK(t); r.Stderr != "" {
			t.Errorf("it says %q", r.Stderr)
		}
		run.Wait().Exits(t, 128+9)
	}
}
