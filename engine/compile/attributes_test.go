package compile_test

import (
	"os"
	"slices"
	"testing"

	"github.com/berth-runtime/berth/engine/compile"
	"github.com/berth-runtime/berth/engine/program"
	"github.com/berth-runtime/berth/engine/program/refinterp"
	"golang.org/x/sys/unix"
)

// A Program for a kernel without mount_setattr makes no such call, asks for the
// flags of each mount that it changes, and goes by what it is told: here that two
// mounts are to be changed each time.
func TestWithoutMountSetattr(t *testing.T) {
	config, err := os.ReadFile("testdata/full.json")
	if err != nil {
		t.Fatal(err)
	}
	p := planOf(t, config)
	facts := factsOf(p)
	facts.NoMountSetattr, facts.Spare = true, 5
	code, err := compile.Container(p, facts)
	if err != nil {
		t.Fatal(err)
	}
	reads, asked, mounted, below := 0, 0, 0, 0
	talk := code.Talk()
	answer := func(c refinterp.Call, mem *refinterp.Memory) (int64, bool) {
		switch c.Nr {
		case unix.SYS_MOUNT_SETATTR:
			return -int64(unix.ENOSYS), true
		case unix.SYS_READV:
			flags, _ := mem.Uint64(c.Args[1])
			path, _ := mem.Uint64(c.Args[1] + 16)
			step := compile.RemountStep{}
			if reads++; reads%3 != 0 {
				step = compile.RemountStep{Flags: unix.MS_REMOUNT | unix.MS_BIND | unix.MS_RDONLY, Path: "inner"}
			}
			message, ok := step.Message()
			if !ok {
				t.Error("no message")
			}
			for i := range 8 {
				if b, ok := mem.Bytes(flags+uint64(i), 1); ok {
					b[0] = message[i]
				}
			}
			if b, ok := mem.Bytes(path, len(message)-8); ok {
				copy(b, message[8:])
			}
			return int64(len(message)), true
		case unix.SYS_MOUNT:
			if target, _ := mem.CString(c.Args[1]); target == "/proc/self/fd/5" {
				mounted++
				if c.Args[3] != unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY {
					t.Errorf("flags %#x", c.Args[3])
				}
			}
		case unix.SYS_OPENAT2:
			if name, _ := mem.CString(c.Args[1]); name == "inner" {
				below++
			}
		case unix.SYS_SENDMSG:
			message, _ := mem.Uint64(c.Args[1] + 16)
			record, _ := mem.Uint64(message)
			bytes, _ := mem.Bytes(record, 16)
			if ask, _, err := talk.Hear(bytes, 1); err == nil && ask.Kind == program.AskMountFlags {
				asked++
				change := compile.ParseMountChange(ask.Value)
				if change.Set|change.Clear|change.Propagation == 0 {
					t.Errorf("it asks for no change: %#x", ask.Value)
				}
			}
		}
		return inTheChild(c, mem)
	}
	kernel := &refinterp.Fake{FDs: []int{0, 1, 2, 3, 4, 5}, Answer: answer}
	result, err := refinterp.Run(code.Segment(), kernel)
	if err != nil || result.Failure != nil || !result.Gone {
		t.Fatalf("%v, %+v", err, result.Failure)
	}
	if asked == 0 || reads != 3*asked || mounted != 2*asked || below != asked {
		t.Errorf("%d changes: %d answers read, %d mounts changed, %d of them below another", asked, reads, mounted, below)
	}
	if slices.Contains(kernel.FDs, 5) {
		t.Error("the spare descriptor is still open at the execve")
	}
}

func TestMountChange(t *testing.T) {
	long := compile.RemountStep{Path: string(make([]byte, 4096))}
	if _, ok := long.Message(); ok {
		t.Error("a path that does not fit was put into a message")
	}
}
