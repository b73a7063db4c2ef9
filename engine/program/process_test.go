package program_test

import (
	"io"
	"os"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/engine/program"
	"github.com/berth-runtime/berth/internal/test/underqemu"
)

// The descriptors of a test process: 0 to 2, then these.
const (
	reportFD = 3
	imageFD  = 4
	firstFD  = 5 // the files given to start
)

// runner is set by TestUnderQEMU for the tests it runs on a foreign machine.
var runner = underqemu.Emulator()

// A process is a child that runs a Program from a sealed memfd.
type process struct {
	*os.Process
	t      *testing.T
	report int // our end of the report socket
	stdout *os.File
}

type startOptions struct {
	noStdin     bool
	noReport    bool // the report descriptor is not open in the child
	deadReports bool // the parent has closed its end
	extraFiles  []*os.File
}

func build(t testing.TB, b *program.Builder) *program.Program {
	t.Helper()
	p, err := b.Build(reportFD)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func start(t *testing.T, p *program.Program, o startOptions) *process {
	t.Helper()
	image, err := p.Image()
	if err != nil {
		t.Skip(err)
	}
	memfd := sealed(t, image)
	defer memfd.Close()
	sock, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	report := os.NewFile(uintptr(sock[1]), "report")
	defer report.Close()
	stdin, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	t.Cleanup(func() { r.Close() })

	files := append([]*os.File{stdin, w, os.Stderr, report, memfd}, o.extraFiles...)
	if o.noStdin {
		files[0] = nil
	}
	if o.noReport {
		files[reportFD] = nil
	}
	if o.deadReports {
		unix.Close(sock[0])
		sock[0] = -1
	}
	// The child's own /proc/self: by then the image is descriptor imageFD.
	path, args := "/proc/self/fd/4", []string{"init"}
	if runner != "" {
		path, args = runner, []string{runner, path}
	}
	proc, err := os.StartProcess(path, args, &os.ProcAttr{
		Files: files,
		Env:   []string{},
		// A test that times out must not leave a looping process behind.
		Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := &process{Process: proc, t: t, report: sock[0], stdout: r}
	t.Cleanup(func() {
		proc.Kill()
		proc.Wait()
		c.closeReport()
	})
	return c
}

func sealed(t *testing.T, image []byte) *os.File {
	t.Helper()
	fd, err := unix.MemfdCreate("init", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "init")
	if _, err := f.Write(image); err != nil {
		t.Fatal(err)
	}
	const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		t.Fatal(err)
	}
	return f
}

func (c *process) closeReport() {
	if c.report >= 0 {
		unix.Close(c.report)
		c.report = -1
	}
}

// output is what the process wrote to its standard output until it ended.
func (c *process) output() string {
	c.t.Helper()
	b, err := io.ReadAll(c.stdout)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(b)
}

// status waits for the end of the process.
func (c *process) status() int {
	c.t.Helper()
	s, err := c.Wait()
	if err != nil {
		c.t.Fatal(err)
	}
	if !s.Exited() {
		c.t.Fatalf("the process ended by %v", s)
	}
	return s.ExitCode()
}

// failure waits for a failure record, or for the end of the process.
func (c *process) failure() (program.Failure, bool) {
	c.t.Helper()
	var buf [64]byte
	n, err := unix.Read(c.report, buf[:])
	if err != nil {
		c.t.Fatal(err)
	}
	if n == 0 {
		return program.Failure{}, false
	}
	f, ok := program.ParseFailure(buf[:n])
	if !ok {
		c.t.Fatalf("not a failure record: % x", buf[:n])
	}
	return f, true
}

// mustSucceed runs the Program to its end, exit status 0 and no failure.
func mustSucceed(t *testing.T, p *program.Program, o startOptions) string {
	t.Helper()
	c := start(t, p, o)
	if f, failed := c.failure(); failed {
		t.Fatalf("failed: %v %v\n%s", f, p.Ops[f.Index].Note, p)
	}
	out := c.output()
	if s := c.status(); s != 0 {
		t.Fatalf("exit status %d", s)
	}
	return out
}

// mustFail runs the Program until it reports a failure, and lets it end.
func mustFail(t *testing.T, p *program.Program, o startOptions) program.Failure {
	t.Helper()
	c := start(t, p, o)
	f, failed := c.failure()
	if !failed {
		t.Fatalf("no failure\n%s", p)
	}
	c.closeReport()
	if s := c.status(); s != 1 {
		t.Fatalf("exit status %d after a failure, want 1", s)
	}
	if nr := p.Ops[f.Index].Nr; f.Nr != nr {
		t.Fatalf("the record names call %d, op %d is call %d", f.Nr, f.Index, nr)
	}
	f.Nr = 0 // checked; callers look at the rest
	return f
}

// print adds a write of s to the standard output.
func print(b *program.Builder, s string) *program.Op {
	return b.Call(unix.SYS_WRITE, program.Int(1), b.CString(s).Arg(), program.Int(int64(len(s))))
}

// printCell adds a write of the eight bytes of a cell.
func printCell(b *program.Builder, c program.Cell) *program.Op {
	return b.Call(unix.SYS_WRITE, program.Int(1), c.Addr().Arg(), program.Int(8))
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func onlyNative(t *testing.T, why string) {
	t.Helper()
	if runner != "" {
		t.Skipf("under %s on %s: %s", runner, runtime.GOARCH, why)
	}
}
