package program_test

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"

	. "github.com/berth-runtime/berth/engine/program"
	"golang.org/x/sys/unix"
)

// The init of a created container is this: a process that waits in a read.
func TestMemoryOfAWaitingProcess(t *testing.T) {
	onlyNative(t, "the memory would be the emulator's")
	all, whole := pssOfWaiting(t, func(*Builder) {})
	_, done := pssOfWaiting(t, (*Builder).ForgetDone)
	if all > 200 {
		t.Errorf("PSS is %d KiB, want at most 200", all)
	}
	// 300 ops of 80 bytes are five whole pages.
	if done > whole-16 {
		t.Errorf("PSS of the image is %d KiB once the ops are forgotten, was %d", done, whole)
	}
	t.Logf("PSS is %d KiB, of the image %d, and %d once the ops are forgotten", all, whole, done)
}

func TestOpsAreReadAgainWhenForgotten(t *testing.T) {
	r, w := pipe(t)
	if _, err := w.WriteString("abc"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	b := NewBuilder()
	again, end := b.NewLabel(), b.NewLabel()
	b.Place(again)
	typical(b)
	b.Call(unix.SYS_READ, Int(firstFD), b.Zeroed(8).Arg(), Int(1)).ZeroFails().Expect(end, unix.EPIPE)
	print(b, ".")
	b.ForgetDone()
	b.Jump(again)
	b.Place(end)
	print(b, "end")
	if out := mustSucceed(t, build(t, b), startOptions{extraFiles: []*os.File{r}}); out != "...end" {
		t.Errorf("%q", out)
	}
}

// pssOfWaiting runs a Program of 300 ops up to where it waits. The rest of what is not
// its image is the stack, which has one to three pages by where the kernel puts it.
func pssOfWaiting(t *testing.T, before func(*Builder)) (all, image int) {
	t.Helper()
	r, w := pipe(t)
	b := NewBuilder()
	typical(b)
	before(b)
	print(b, "ready")
	b.Call(unix.SYS_READ, Int(firstFD), b.Zeroed(8).Arg(), Int(1))
	c := start(t, build(t, b), startOptions{extraFiles: []*os.File{r}})
	if _, err := c.stdout.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("/proc/" + strconv.Itoa(c.Pid) + "/smaps")
	if err != nil {
		t.Skipf("no smaps: %v", err)
	}
	ofImage := false
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		switch f := strings.Fields(lines.Text()); {
		case len(f) > 1 && f[0] == "Pss:":
			pss, _ := strconv.Atoi(f[1])
			all += pss
			if ofImage {
				image += pss
			}
		case len(f) > 1 && !strings.HasSuffix(f[0], ":"): // a mapping begins
			ofImage = strings.Contains(lines.Text(), "/memfd:")
		}
	}
	if image == 0 || all == image {
		t.Errorf("no PSS of the image and of the stack in\n%s", data)
	}
	w.Close()
	c.status()
	return all, image
}
