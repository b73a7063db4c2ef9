package launch

import (
	"os"
	"testing"

	"github.com/berth-runtime/berth/compile"
	"github.com/berth-runtime/berth/program"
	"golang.org/x/sys/unix"
)

// Whatever numbers the descriptors for the child have here, the image is still
// there when it is executed.
func TestStartWithAnyDescriptors(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	at := func(fd int) int { // a descriptor of that number or above
		high, err := unix.FcntlInt(null.Fd(), unix.F_DUPFD_CLOEXEC, fd)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(high) })
		return high
	}
	for _, gate := range []int{0, at(3), at(10), at(40)} {
		for preserved := range 12 {
			s := Spawn{Gate: gate, Root: -1, Cgroup: -1, Stdio: [3]uintptr{null.Fd(), null.Fd(), null.Fd()}}
			for range preserved {
				s.Preserved = append(s.Preserved, uintptr(gate))
			}
			s.Program = func(f *compile.Facts) (*program.Program, error) {
				b := program.NewBuilder()
				b.Because("", "end")
				b.Call(unix.SYS_EXIT_GROUP, program.Int(42))
				return b.Build(f.Report)
			}
			child, err := s.Start()
			if err != nil {
				t.Fatalf("gate %d, %d preserved: %v", gate, preserved, err)
			}
			if status, err := child.Wait(); err != nil || status.ExitStatus() != 42 {
				t.Errorf("gate %d, %d preserved: it ended with %v, %v", gate, preserved, status, err)
			}
			child.Close()
		}
	}
}
