package events

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/reaper"
)

// theReaper is one for all tests: a second would take the children of the first.
var theReaper = sync.OnceValues(reaper.Start)

// Without a socket each event goes through containerd's own program, in order, again where that
// fails; one that it goes on to refuse does not hold up the rest.
func TestByBinary(t *testing.T) {
	r, err := theReaper()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	containerd := filepath.Join(dir, "containerd")
	// It fails with the first event once, and with the one of "never" always.
	script := `#!/bin/sh
cd ` + dir + `
cat > event
grep -q never event && exit 1
[ -e failed ] || { : > failed; exit 1; }
echo "$* $(tr -cd 'a-z0-9' < event | grep -o 'number[0-9]' | head -n 1)" >> taken
`
	if err := os.WriteFile(containerd, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	var said []string
	p := newPublisher(&binary{path: containerd, address: "/run/containerd.sock", reaper: r, most: 4}, "ns", func(text string) { said = append(said, text) })
	p.Resume()
	for _, id := range []string{"number1", "number2", "never", "number3"} {
		p.Publish(&wire.TaskExit{ContainerID: id, ID: id})
	}
	p.Close(time.Minute)
	text, err := os.ReadFile(filepath.Join(dir, "taken"))
	if err != nil {
		t.Fatal(err, said)
	}
	const call = "--address /run/containerd.sock publish --topic /tasks/exit --namespace ns number"
	if want := call + "1\n" + call + "2\n" + call + "3\n"; string(text) != want {
		t.Errorf("taken:\n%swant:\n%s", text, want)
	}
	if len(said) != 3 || !strings.Contains(said[2], "refuses") {
		t.Errorf("the log: %q", said)
	}
}

// A program of containerd's that takes its time does not let the publisher be suspended, however
// often that is tried meanwhile; it goes on.
func TestSuspendBesideASlowProgram(t *testing.T) {
	r, err := theReaper()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	gate, begun, containerd := filepath.Join(dir, "gate"), filepath.Join(dir, "begun"), filepath.Join(dir, "containerd")
	if err := unix.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\n: > " + begun + "\nread line < " + gate + "\necho taken >> " + dir + "/taken\n"
	if err := os.WriteFile(containerd, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	p := NewByBinary(containerd, "", "ns", r, func(text string) { t.Log(text) })
	p.Resume()
	p.Publish(&wire.TaskExit{ContainerID: "c", ID: "c"})
	wait.Until(t, "the program", func() bool { _, err := os.Stat(begun); return err == nil })
	for range 3 {
		if p.Suspend(time.Millisecond) {
			t.Fatal("it is suspended while an event is under way")
		}
	}
	if err := os.WriteFile(gate, []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the publisher to be suspended", func() bool { return p.Suspend(time.Minute) })
	p.Resume()
	p.Close(time.Minute)
	if text, err := os.ReadFile(dir + "/taken"); err != nil || string(text) != "taken\n" {
		t.Errorf("taken: %q, %v", text, err)
	}
}
