package stdio

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/shim/internal/fds"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/keeper"
)

// stageVariable is set in a process that copies, until it is killed or has come to the end.
const stageVariable = "BERTH_TEST_STAGE"

// What it has, from descriptor 3 on: the memory, the source, the file, the two ends of the stage,
// and what it closes when it begins.
func copyThroughStage() error {
	slot, err := strconv.ParseUint(os.Getenv(stageVariable), 10, 32)
	if err != nil {
		return err
	}
	m, err := keeper.Map(3)
	if err != nil {
		return err
	}
	for _, pipe := range []int{4, 6, 7} { // os/exec has made them blocking
		if err := unix.SetNonblock(pipe, true); err != nil {
			return err
		}
	}
	t := fds.New()
	file := func(n uint32, what string) *os.File {
		f, openErr := t.File(n, what)
		if openErr != nil {
			err = openErr
		}
		return f
	}
	src, dst, begun := file(4, "source"), file(5, "file"), file(8, "begun")
	stage := takeOverStage(&wire.HandoverStage{In: 6, Out: 7, Slot: uint32(slot)}, m, file)
	if err != nil {
		return err
	}
	s := newStream(dst, src, func(failed error) { err = failed }, func() {})
	s.kept, s.stage = true, stage
	begun.Close()
	s.run()
	<-s.done
	return err
}

// What goes to a file is there once and in its order, whenever those that copy it are killed. Two
// do so to the one file.
func TestStageOfTheKilled(t *testing.T) {
	if os.Getenv(stageVariable) != "" {
		if err := copyThroughStage(); err != nil {
			t.Fatal(err)
		}
		return
	}
	defer theReaper(t).Hold()()
	path := filepath.Join(t.TempDir(), "log")
	var numbers bytes.Buffer
	for i := range 300000 {
		fmt.Fprintln(&numbers, i)
	}
	// So that each byte tells whose it is.
	const digits, letters = "0123456789\n", "abcdefghijk"
	whose := map[string][]byte{digits: numbers.Bytes()}
	whose[letters] = bytes.Map(func(r rune) rune { return rune(letters[strings.IndexRune(digits, r)]) }, numbers.Bytes())
	// As often as there is time for: under the race detector each lives for a tenth of a second
	// before it begins.
	most := 300
	if testing.Short() {
		most = 30
	}
	done := make(chan error, len(whose))
	var kills atomic.Int64
	for _, text := range whose {
		go func() { done <- copyKilled(path, text, most, &kills) }()
	}
	for range whose {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	t.Logf("killed %d times", kills.Load())
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for alphabet, want := range whose {
		got := bytes.Map(func(r rune) rune {
			if strings.ContainsRune(alphabet, r) {
				return r
			}
			return -1
		}, all)
		if !bytes.Equal(got, want) {
			t.Errorf("%d bytes of %.3q..., want %d", len(got), alphabet, len(want))
		}
	}
}

// copyKilled has text copied to the end of a file by processes, up to most of which are killed at
// random.
func copyKilled(path string, text []byte, most int, kills *atomic.Int64) error {
	memory, err := keeper.Create()
	if err != nil {
		return err
	}
	defer memory.Close()
	m, err := keeper.Map(int(memory.Fd()))
	if err != nil {
		return err
	}
	g, change, err := newStage(m)
	if err != nil {
		return err
	}
	defer g.close()
	m.Commit(change)
	h := g.Handover(fds.New())
	var ends [2]*os.File
	for i, n := range []uint32{h.In, h.Out} {
		fd, err := unix.Dup(int(n))
		if err != nil {
			return err
		}
		ends[i] = os.NewFile(uintptr(fd), "stage")
		defer ends[i].Close()
	}
	source, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer source.Close()
	go func() {
		defer write.Close()
		for len(text) > 0 {
			n, err := write.Write(text[:min(len(text), 1+rand.IntN(20000))])
			if err != nil {
				return
			}
			text = text[n:]
		}
	}()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	for n := 0; ; n++ {
		begun, begin, err := os.Pipe()
		if err != nil {
			return err
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestStageOfTheKilled$")
		cmd.Env = append(os.Environ(), stageVariable+"="+fmt.Sprint(h.Slot))
		cmd.ExtraFiles = []*os.File{memory, source, file, ends[0], ends[1], begin}
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			return err
		}
		begin.Close()
		begun.Read(make([]byte, 1))
		begun.Close()
		if n < most {
			time.Sleep(time.Duration(rand.IntN(1500)) * time.Microsecond)
			cmd.Process.Kill()
		}
		if err := cmd.Wait(); err == nil {
			return nil
		} else if cmd.ProcessState.ExitCode() >= 0 { // it was not killed
			return fmt.Errorf("%w: %s", err, out.Bytes())
		}
		kills.Add(1)
	}
}
