package systemd_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/cgroup/systemd"
	"github.com/berth-runtime/berth/cgroup/systemd/unit"
)

func needSystemd(t *testing.T) {
	t.Helper()
	if h, err := cgroup.Detect(); err != nil || h.Mode() != cgroup.Unified || os.Geteuid() != 0 {
		t.Skip("needs root, and cgroup v2 alone")
	}
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		t.Skip("needs systemd as process 1")
	}
}

// What the example prints depends on the machine, so that go test compiles it only. Here it is run
// where it says what it should.
func TestExample(t *testing.T) {
	needSystemd(t)
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
	const want = "its cgroup is /machine.slice/berth-demo.scope and 1 files are to be written\n"
	if got, err := io.ReadAll(r); err != nil || string(got) != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

// The order of the bytes of a bitmap shows from the ninth processor on, which need not be there:
// systemd keeps the list that it was given.
func TestBitmapAsSystemdReadsIt(t *testing.T) {
	needSystemd(t)
	list, err := ledger.ParseList("1,9-10,17")
	if err != nil {
		t.Fatal(err)
	}
	first := exec.Command("sleep", "60")
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	defer first.Wait()
	defer first.Process.Kill()
	ctx := context.Background()
	m := systemd.New(systemd.Options{})
	defer m.Close()
	place := unit.Place{Slice: "system.slice", Unit: fmt.Sprintf("bitmap-test-%d.scope", os.Getpid())}
	properties := append(systemd.Base(place, "test", first.Process.Pid), systemd.Property{Name: "AllowedCPUs", Value: list.Bitmap()})
	if err := m.Start(ctx, place.Unit, properties); err != nil {
		t.Fatal(err)
	}
	defer m.Stop(ctx, place.Unit)
	out, err := exec.Command("systemctl", "show", "--value", "-p", "AllowedCPUs", place.Unit).CombinedOutput()
	if got := strings.TrimSpace(string(out)); err != nil || got != "1 9-10 17" {
		t.Errorf("systemd has read %q (%v)", got, err)
	}
}
