package stdio

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/shim/internal/fds"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/keeper"
)

// noted is what the next shim would find of streams, were this one killed now.
func noted(t *testing.T, m *keeper.Memory) *wire.HandoverIO {
	t.Helper()
	pieces := m.Pieces(keeper.Streams)
	if len(pieces) != 1 {
		t.Fatalf("streams of %d processes are noted", len(pieces))
	}
	var k wire.KeptStreams
	if err := wire.Unmarshal(pieces[0].Data, &k); err != nil || k.IO == nil {
		t.Fatalf("what is noted: %v", err)
	}
	return k.IO
}

func number(f *os.File) uint32 { return fds.New().Number(f) }

// A descriptor is not noted any more when it is closed, or is another file's: the next shim could
// not go on, or would close that file.
func TestNothingClosedIsNoted(t *testing.T) {
	memory, err := keeper.Create()
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	m, err := keeper.Map(int(memory.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("input", func(t *testing.T) {
		in := fifo(t, "in")
		s := mustOpen(t, Config{ID: "c", Stdin: in, Memory: m})
		defer s.Close()
		pipe := number(s.inPipe)
		client, err := os.OpenFile(in, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		child := run(t, s, "cat")
		if got := noted(t, m); got.InPipe != pipe || got.InCopy == nil {
			t.Errorf("the pipe %d is noted as %d", pipe, got.InPipe)
		}
		client.Close()
		s.CloseStdin()
		child.Wait() // it sees the end
		if got := noted(t, m); got.InPipe != 0 || got.InCopy != nil {
			t.Errorf("descriptor %d is noted", got.InPipe)
		}
	})
	t.Run("logger", func(t *testing.T) {
		program := filepath.Join(t.TempDir(), "logger")
		if err := os.WriteFile(program, []byte("#!/bin/sh\nexec 5>&-\nexec cat <&3 >/dev/null\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		s := mustOpen(t, Config{ID: "c", Stdout: "binary://" + program, Memory: m})
		defer s.Close()
		var were []uint32
		for _, f := range []*os.File{s.Child().Out, s.Child().Err} {
			were = append(were, number(f))
		}
		if got := noted(t, m); got.ChildOut != were[0] || got.ChildErr != were[1] {
			t.Errorf("descriptors %d and %d are noted, want %d", got.ChildOut, got.ChildErr, were)
		}
		child := run(t, s, "echo a")
		child.Wait()
		// All that is noted can be taken up: a number of another file's would be found here.
		var others []int
		for range were {
			fd, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			others = append(others, fd)
		}
		table, h := fds.New(), noted(t, m)
		h.Logger.Pid = 0 // it has ended, now or soon
		next, err := TakeOver(h, Config{ID: "c"}, table, theReaper(t), func(string) {})
		if err != nil {
			t.Error(err)
		}
		for _, fd := range others {
			if table.Has(uint32(fd)) {
				t.Errorf("descriptor %d is another file's, and is taken for a logging program's", fd)
			}
			unix.Close(fd)
		}
		if next != nil && next.logger == nil {
			t.Error("the logging program is not known")
		}
	})
}
