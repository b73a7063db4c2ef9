package systemd_test

import (
	"io"
	"os"
	"testing"

	"github.com/berth-runtime/berth/cgroup"
)

// What the example prints depends on the machine, so that go test compiles it only. Here it is run where it says what it should.
func TestExample(t *testing.T) {
	if h, err := cgroup.Detect(); err != nil || h.Mode() != cgroup.Unified || os.Geteuid() != 0 {
		t.Skip("needs root, and cgroup v2 alone")
	}
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		t.Skip("needs systemd as process 1")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	stdout := os.Stdout
	os.Stdout = w
	ExampleManager_Start()
	os.Stdout = stdout
	w.Close()
	const want = "its cgroup is /machine.slice/berth-demo.scope and 0 files are left to write\n"
	if got, err := io.ReadAll(r); err != nil || string(got) != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}
