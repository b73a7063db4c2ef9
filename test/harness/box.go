package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// mark is the environment variable by which a process that the engine started is known as a test's.
const mark = "BERTH_TEST_MARK"

// A Box is what one test has to itself.
type Box struct {
	T testing.TB
	// Dir is the test's directory. What is put there is removed with it.
	Dir string
	// Root is the engine's state root.
	Root string
	// Tag is a word that no other test of this machine uses: it is part of all its containers' ids
	// and cgroups.
	Tag string
	// Globals are the global flags of every call. They begin with --root.
	Globals []string
	// Wrap is put before every call, in front of the call's own.
	Wrap []string

	temp       string // the engine's TMPDIR
	containers int
	outputs    atomic.Int64
	before     surroundings
}

var boxes atomic.Int64

// New makes the test's Box, and sees to its end. It skips the test where no container can be run.
func New(t testing.TB) *Box {
	t.Helper()
	NeedContainers(t)
	return newBox(t)
}

// NewForAnyone is New for tests that an ordinary user can run too.
func NewForAnyone(t testing.TB) *Box {
	t.Helper()
	if os.Geteuid() == 0 {
		NeedContainers(t)
	} else if _, err := busybox(); err != nil {
		Skip(t, "needs a static busybox: %v", err)
	}
	return newBox(t)
}

func newBox(t testing.TB) *Box {
	t.Helper()
	Engine(t)
	Helper(t)
	tag := fmt.Sprintf("berth-test-%d-%d", os.Getpid(), boxes.Add(1))
	b := &Box{T: t, Tag: tag, Dir: filepath.Join(session, tag)}
	b.Root, b.temp = filepath.Join(b.Dir, "state"), filepath.Join(b.Dir, "tmp")
	b.Globals = []string{"--root", b.Root}
	for _, dir := range []string{b.Dir, b.temp} {
		b.must(os.Mkdir(dir, 0o755))
	}
	b.must(os.Chmod(b.temp, 0o1777))
	b.before = b.look()
	t.Cleanup(b.end)
	return b
}

// Path names a file in the test's directory.
func (b *Box) Path(name string) string { return filepath.Join(b.Dir, name) }

// WriteFile puts a file into the test's directory.
func (b *Box) WriteFile(name, content string, mode os.FileMode) string {
	b.T.Helper()
	path := b.Path(name)
	b.must(os.MkdirAll(filepath.Dir(path), 0o755))
	b.must(os.WriteFile(path, []byte(content), mode))
	b.must(os.Chmod(path, mode))
	return path
}

func (b *Box) must(err error) {
	b.T.Helper()
	if err != nil {
		b.T.Fatal(err)
	}
}

// Mark is an environment entry by which the leak check knows a process as the test's, for processes
// whose environment a config gives, and that may be outside of the container's cgroup, like hooks.
func (b *Box) Mark() string { return mark + "=" + b.Tag }
