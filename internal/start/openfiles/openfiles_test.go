// Not in the package itself, which a test would make import something.
package openfiles_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/internal/start/openfiles"
	"golang.org/x/sys/unix"
)

// TestFirst starts this program with limits that Go changes, and with some that it
// leaves alone.
func TestFirst(t *testing.T) {
	if os.Getenv("BERTH_TEST_LIMIT") != "" {
		soft, hard, ok := openfiles.First()
		var now unix.Rlimit
		_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &now)
		fmt.Println("first", soft, hard, ok, "raised", now.Cur != soft)
		return
	}
	if _, _, ok := openfiles.First(); !ok {
		t.Skip("there is no assembly for this machine")
	}
	for _, c := range []struct {
		soft, hard string
		raised     bool
	}{{"77", "99", true}, {"99", "99", false}} {
		cmd := exec.Command("/bin/sh", "-c", `ulimit -S -n `+c.soft+`; ulimit -H -n `+c.hard+`; exec "$0" -test.run '^TestFirst$'`, os.Args[0])
		cmd.Env = append(os.Environ(), "BERTH_TEST_LIMIT=1")
		out, err := cmd.CombinedOutput()
		if want := fmt.Sprintf("first %s %s true raised %v\n", c.soft, c.hard, c.raised); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s of %s: want %q, got %q, %v", c.soft, c.hard, want, out, err)
		}
	}
}
