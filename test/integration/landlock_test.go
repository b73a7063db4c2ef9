package integration

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

func landlockABI() int {
	abi, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, 1)
	if errno != 0 {
		return 0
	}
	return int(abi)
}

// covers: landlock
func TestLandlock(t *testing.T) {
	if landlockABI() == 0 {
		harness.Skip(t, "needs Landlock (landlock in lsm= of the kernel's command line)")
	}
	b := harness.New(t)
	c := b.Container()
	c.WriteFile("secret", "s", 0o666)
	c.WriteFile("data/old", "old", 0o666)
	c.WriteFile("open/file", "f", 0o666)
	c.Spec.Annotations = map[string]string{
		"run.berth.landlock.execute": "/inside",
		"run.berth.landlock.read":    "/open:/proc",
		"run.berth.landlock.write":   "/data",
	}
	words := []string{"read=/secret", "read=/open/file", "write=/open/file", "read=/data/old", "write=/data/old,x", "create=/data/new", "mkdir=/open/dir", "unlink=/data/old", "list=/", "exec=/bin/true"}
	got := c.Try(words...)
	harness.Allowed(t, got, "read=/open/file", "read=/data/old", "write=/data/old,x", "create=/data/new", "unlink=/data/old")
	for _, word := range []string{"read=/secret", "write=/open/file", "mkdir=/open/dir", "list=/", "exec=/bin/true"} {
		harness.Refused(t, got, word, "EACCES")
	}
	// What is added by exec is bound as well.
	c.Spec.Process.Args = []string{"/inside", "hang"}
	c.RunDetached()
	added := harness.ParseAttempts(t, c.Exec(nil, "/inside", "try", "read=/secret", "read=/open/file").OK(t).Stdout)
	harness.Allowed(t, added, "read=/open/file")
	harness.Refused(t, added, "read=/secret", "EACCES")
	c.Command("checkpoint", []string{"--image-path", b.Path("image")}).Run().Fails(t, "Landlock")
	c.Delete("--force")
}

func TestLandlockMistakes(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true")
	c.Spec.Annotations = map[string]string{"run.berth.landlock.read": "/missing:/bin"}
	want := "/missing"
	if landlockABI() == 0 {
		want = "the kernel has no Landlock"
	}
	if r := c.Run().Fails(t, want); !strings.Contains(r.Stderr, "/annotations/run.berth.landlock.read") {
		t.Errorf("the error does not name the annotation: %s", r.Stderr)
	}
	c.Spec.Annotations = map[string]string{"run.berth.landlock.touch": "/bin"}
	c.Run().Fails(t, "read, execute or write")
}
