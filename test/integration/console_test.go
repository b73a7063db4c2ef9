package integration

import (
	"os"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

func TestConsoleSocket(t *testing.T) {
	for _, verb := range []string{"create", "run"} {
		t.Run(verb, func(t *testing.T) {
			b := harness.New(t)
			c := b.Container("/bin/sh", "-c", "tty; echo one; read x; echo got $x; exit 6")
			c.Spec.Process.Terminal = true
			s := b.FDSocket("console.sock")
			if verb == "create" {
				c.Create("--console-socket", s.Path)
			} else {
				c.RunDetached("--console-socket", s.Path)
			}
			master := s.ReceiveTerminal()
			if verb == "create" {
				c.Start()
			}
			if got := master.Until("one"); !strings.HasPrefix(got, "/dev/pts/0") && !strings.HasPrefix(got, "/dev/console") {
				t.Errorf("the terminal is %q", got)
			}
			master.Write("word\n")
			if got := master.All(); !strings.Contains(got, "got word") {
				t.Errorf("the terminal said %q", got)
			}
			if status := c.WaitExit(); status.ExitStatus() != 6 {
				t.Errorf("ended with %v", status)
			}
			c.Delete()
		})
	}
}

func TestConsoleSocketMessage(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true")
	c.Spec.Process.Terminal = true
	s := b.FDSocket("console.sock")
	c.Create("--console-socket", s.Path)
	name, fd := s.ReceiveOne()
	defer unix.Close(fd)
	if name == "" {
		t.Error("no name came with the terminal's descriptor")
	}
	if n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN); err != nil {
		t.Errorf("what came is not a master of a terminal: %d, %v", n, err)
	}
}

// A terminal that is handed over has the settings of any new one: clients copy its output to
// terminals in raw mode, which show a staircase without carriage returns.
func TestConsoleIsAsNew(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/sh", "-c", "echo one; echo two")
	c.Spec.Process.Terminal = true
	s := b.FDSocket("console.sock")
	c.RunDetached("--console-socket", s.Path)
	if got := s.ReceiveTerminal().All(); got != "one\r\ntwo\r\n" {
		t.Errorf("the terminal said %q", got)
	}
	c.WaitExit()
}

// The terminal of a command in the foreground adds carriage returns itself; its output in a file
// has none.
func TestForegroundTerminalDoesNotTranslate(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/sh", "-c", "echo one; echo two")
	c.Spec.Process.Terminal = true
	r := c.Command("run", nil).Run()
	if r.Stdout != "one\ntwo\n" {
		t.Errorf("the output is %q", r.Stdout)
	}
}

// The terminal is the controlling one of the container's process, owned by its user, of the size
// that the config says, and the container's own: from its devpts, which is not the host's.
func TestTerminalFromInside(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/sh", "-c", "exec /inside look /dev/console > /out")
	c.WriteFile("out", "", 0o666)
	c.Spec.Process.Terminal = true
	c.Spec.Process.ConsoleSize = &specs.Box{Height: 41, Width: 137}
	c.Spec.Process.User.UID, c.Spec.Process.User.GID = 1000, 1001
	s := b.FDSocket("console.sock")
	c.RunDetached("--console-socket", s.Path)
	master := s.ReceiveTerminal()
	if status := c.WaitExit(); status.ExitStatus() != 0 {
		t.Fatalf("ended with %v: %s", status, master.All())
	}
	data, err := os.ReadFile(c.Path("out"))
	if err != nil {
		t.Fatal(err)
	}
	v := harness.ParseView(t, string(data))
	if v.TTY == nil {
		t.Fatal("standard input is not a terminal")
	}
	if v.TTY.Rows != 41 || v.TTY.Cols != 137 {
		t.Errorf("size %dx%d", v.TTY.Rows, v.TTY.Cols)
	}
	if !v.TTY.Controls {
		t.Error("it is not the controlling terminal")
	}
	if v.TTY.UID != 1000 {
		t.Errorf("owner %d", v.TTY.UID)
	}
	if v.SID != v.PID {
		t.Errorf("session %d of process %d: not its leader", v.SID, v.PID)
	}
	if f := v.Files["/dev/console"]; f.Type != "char" || f.Major != 136 {
		t.Errorf("/dev/console is %+v, want the terminal", f)
	}
	harness.MountAt(t, v, "/dev/console")
}

func TestConsoleResize(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "winch")
	c.Spec.Process.Terminal = true
	s := b.FDSocket("console.sock")
	c.RunDetached("--console-socket", s.Path)
	master := s.ReceiveTerminal()
	master.Until("size ")
	master.Until("\n")
	master.Resize(33, 99)
	master.Until("size 33x99")
	master.Resize(10, 20)
	master.Until("size 10x20")
	c.Kill("KILL").WaitExit()
}

// When the master goes, the process is hung up.
func TestConsoleHangUp(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/sh", "-c", "echo ready; read x; exit 9")
	c.Spec.Process.Terminal = true
	s := b.FDSocket("console.sock")
	c.RunDetached("--console-socket", s.Path)
	_, fd := s.ReceiveOne()
	// Nobody else may hold the master, or the process would not notice its end.
	unix.Close(fd)
	c.WaitExit()
}

func TestTerminalRefusals(t *testing.T) {
	b := harness.New(t)
	wanted := b.Container("/bin/true")
	wanted.Spec.Process.Terminal = true
	wanted.TryCreate().Fails(t, "console")
	wanted.TryRunDetached().Fails(t, "console")

	s := b.FDSocket("console.sock")
	unwanted := b.Container("/bin/true")
	unwanted.TryCreate("--console-socket", s.Path).Fails(t, "console")
	unwanted.TryRunDetached("--console-socket", s.Path).Fails(t, "console")

	// Nobody listens.
	wanted.TryCreate("--console-socket", b.Path("nobody.sock")).Fails(t, "no such file or directory")
	if r := b.Berth("list", "-q").OK(t); r.Stdout != "" {
		t.Errorf("a refused container is in the list: %q", r.Stdout)
	}
}
