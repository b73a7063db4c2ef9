package staged

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/shim/internal/fds"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/keeper"
)

// roleVariable is set in a process that is killed: what it does, and its slots.
const roleVariable = "BERTH_TEST_STAGED"

// What such a process has, from descriptor 3 on.
const (
	memoryFD = iota + 3
	inFD     // the ends of the stage
	outFD
	endFD  // the pipe that is written to, or read from
	textFD // what is written
	begunFD
)

// size is of what is written at a time: mostly little, and now and then more than a stage has room
// for at first.
func size() int { return 1 + rand.IntN(1<<rand.IntN(17)) }

func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := play(role); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

func play(role string) error {
	var stage, note uint32
	if _, err := fmt.Sscanf(role[1:], "%d,%d", &stage, &note); err != nil {
		return err
	}
	m, err := keeper.Map(memoryFD)
	if err != nil {
		return err
	}
	for _, fd := range []int{inFD, outFD, endFD} { // os/exec has made them blocking
		if err := unix.SetNonblock(fd, true); err != nil {
			return err
		}
	}
	t := fds.New()
	g := TakeOver(&wire.HandoverStage{In: inFD, Out: outFD, Slot: stage}, m, func(n uint32, what string) *os.File {
		f, _ := t.File(n, what)
		return f
	})
	end, text, begun := os.NewFile(endFD, "end"), os.NewFile(textFD, "text"), os.NewFile(begunFD, "begun")
	begun.Close()
	if role[0] == 'w' {
		return write(m, g, end, text, note)
	}
	return read(m, g, end, note)
}

// write leads text to a pipe. How far it has come is noted as it is loaded.
func write(m *keeper.Memory, g *Pipe, dst, text *os.File, note uint32) error {
	for buf := make([]byte, 1<<17); ; {
		if err := g.Flush(dst); err != nil {
			return err
		}
		n, err := text.ReadAt(buf[:size()], int64(noted(m, note)))
		if n == 0 && err == io.EOF {
			return nil
		}
		if err != nil && err != io.EOF {
			return err
		}
		m.Commit(g.Load(buf[:n]), noting(m, note, noted(m, note)+uint64(n)))
	}
}

// read leads a pipe to pieces in the memory, as a stream sends them. How far it has come is noted
// with each.
func read(m *keeper.Memory, g *Pipe, src *os.File, note uint32) error {
	if _, err := g.Open(); err != nil {
		return err
	}
	for {
		told := noted(m, note)
		if rest := g.Data(); told-*g.Word(Own) < uint64(len(rest)) {
			rest = rest[told-*g.Word(Own):]
			part := rest[:min(len(rest), size())]
			place := binary(told)
			m.Commit(keeper.Change{Slot: m.Slot(), Kind: keeper.Message, Data: append(place, part...)}, noting(m, note, told+uint64(len(part))))
			continue
		}
		g.Clear()
		*g.Word(Own) = told
		if more, err := g.Read(); err != nil {
			return err
		} else if more {
			continue
		}
		if n, err := g.Fill(src); n == 0 {
			return err
		}
	}
}

// A note is a number of eight bytes.
func noting(m *keeper.Memory, note uint32, n uint64) keeper.Change {
	return keeper.Change{Slot: m.At(note), Kind: keeper.Event, Data: binary(n), Room: true}
}

func binary(n uint64) []byte { return fmt.Appendf(nil, "%016x", n) }

func noted(m *keeper.Memory, note uint32) uint64 {
	b, err := m.At(note).InPlace()
	if err != nil {
		panic(err)
	}
	return number(b)
}

func number(b []byte) uint64 {
	n, _ := strconv.ParseUint(string(b[:16]), 16, 64)
	return n
}

// What goes through a stage, in either direction, is at its end once and in its order, whenever
// those that lead it there are killed.
func TestKilled(t *testing.T) {
	var numbers bytes.Buffer
	for i := range 300_000 {
		fmt.Fprintln(&numbers, i)
	}
	most := 150
	if testing.Short() {
		most = 20
	}
	for _, role := range []string{"write", "read"} {
		t.Run(role, func(t *testing.T) { killed(t, role, numbers.Bytes(), most) })
	}
}

func killed(t *testing.T, role string, text []byte, most int) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	memory, err := keeper.Create()
	must(err)
	defer memory.Close()
	m, err := keeper.Map(int(memory.Fd()))
	must(err)
	g, change, err := New(m)
	must(err)
	defer g.Close()
	note := m.Slot()
	m.Commit(change, noting(m, note.Number(), 0))
	file, err := os.CreateTemp(t.TempDir(), "text")
	must(err)
	defer file.Close()
	_, err = file.Write(text)
	must(err)
	pipeOut, pipeIn, err := os.Pipe()
	must(err)
	defer pipeOut.Close()
	defer pipeIn.Close()
	got := make(chan []byte, 1)
	end := pipeIn
	if role == "write" {
		go func() {
			all, _ := io.ReadAll(pipeOut)
			got <- all
		}()
	} else {
		end = pipeOut
		go func() {
			defer pipeIn.Close()
			for rest := text; len(rest) > 0; {
				n, err := pipeIn.Write(rest[:min(len(rest), size())])
				if err != nil {
					return
				}
				rest = rest[n:]
			}
		}()
	}
	kills := 0
	for n := 0; ; n++ {
		begun, begin, err := os.Pipe()
		must(err)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%c%d,%d", roleVariable, role[0], g.Slot().Number(), note.Number()))
		cmd.ExtraFiles = []*os.File{memory, g.in, g.out, end, file, begin}
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		must(cmd.Start())
		begin.Close()
		begun.Read(make([]byte, 1))
		begun.Close()
		if n < most {
			time.Sleep(time.Duration(rand.IntN(1000)) * time.Microsecond)
			cmd.Process.Kill()
		}
		if err := cmd.Wait(); err == nil {
			break
		} else if cmd.ProcessState.ExitCode() >= 0 { // it was not killed
			t.Fatalf("%v: %s", err, out.Bytes())
		}
		kills++
	}
	t.Logf("killed %d times", kills)
	var all []byte
	if role == "write" {
		pipeIn.Close()
		all = <-got
	} else {
		after, err := keeper.Map(int(memory.Fd()))
		must(err)
		pieces := after.Pieces(keeper.Message)
		slices.SortFunc(pieces, func(a, b keeper.Piece) int { return strings.Compare(string(a.Data[:16]), string(b.Data[:16])) })
		for _, p := range pieces {
			if at := number(p.Data); at != uint64(len(all)) {
				t.Fatalf("a piece is at %d, where %d bytes have come", at, len(all))
			}
			all = append(all, p.Data[16:]...)
		}
	}
	if !bytes.Equal(all, text) {
		t.Errorf("%d bytes, want %d", len(all), len(text))
	}
}

// A reader that is gone is an error, and one that takes nothing is waited for until a deadline;
// what was not taken is there yet.
func TestFlushStops(t *testing.T) {
	memory, err := keeper.Create()
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	m, err := keeper.Map(int(memory.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	g, change, err := New(m)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	m.Commit(change)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	want := bytes.Repeat([]byte("0123456789abcdef"), 20_000) // more than both pipes take
	m.Commit(g.Load(want))
	w.SetDeadline(time.Now().Add(10 * time.Millisecond))
	if err := g.Flush(w); !os.IsTimeout(err) {
		t.Fatalf("flush to a full pipe: %v", err)
	}
	w.SetDeadline(time.Time{})
	got := make(chan []byte)
	go func() {
		b := make([]byte, len(want))
		n, _ := io.ReadFull(r, b)
		got <- b[:n]
	}()
	if err := g.Flush(w); err != nil {
		t.Error(err)
	}
	if got := <-got; !bytes.Equal(got, want) {
		t.Errorf("%d bytes, want %d", len(got), len(want))
	}
	r.Close()
	m.Commit(g.Load([]byte("more")))
	if err := g.Flush(w); err == nil {
		t.Error("there is no reader, and no error")
	}
}
