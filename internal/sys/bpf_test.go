package sys

import (
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offsets and sizes as the kernel's headers have them.
func TestBPFLayouts(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want uintptr
	}{
		{"prog load, size", unsafe.Sizeof(bpfProgLoad{}), 64},
		{"prog load, log_buf", unsafe.Offsetof(bpfProgLoad{}.logBuf), 32},
		{"prog load, prog_name", unsafe.Offsetof(bpfProgLoad{}.progName), 48},
		{"attach, replace_bpf_fd", unsafe.Offsetof(bpfProgAttach{}.replaceFD), 16},
		{"query, prog_ids", unsafe.Offsetof(bpfProgQuery{}.progIDs), 16},
		{"query, prog_cnt", unsafe.Offsetof(bpfProgQuery{}.progCount), 24},
		{"info, name", unsafe.Offsetof(bpfProgInfo{}.name), 64},
	} {
		if c.got != c.want {
			t.Errorf("%s is %d, want %d", c.name, c.got, c.want)
		}
	}
}

// bpfInsn encodes an instruction without registers but the first.
func bpfInsn(op uint8, imm int32) []byte {
	b := []byte{op, 0, 0, 0}
	return binary.NativeEndian.AppendUint32(b, uint32(imm))
}

func TestLoadCgroupDevice(t *testing.T) {
	const moveImm, exit = 0xb7, 0x95
	allow := append(bpfInsn(moveImm, 1), bpfInsn(exit, 0)...)
	p, err := LoadCgroupDevice("berth_test_prog", allow)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) && os.Getuid() != 0 {
		t.Skipf("this machine does not let us load BPF programs: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if name, err := p.Name(); err != nil || name != "berth_test_prog" {
		t.Errorf("name %q %v", name, err)
	}
	if flags, err := unix.FcntlInt(uintptr(p), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("the descriptor is not close-on-exec: %#x %v", flags, err)
	}
	// Without an exit the verifier refuses, and its words come along.
	_, err = LoadCgroupDevice("berth_test_prog", bpfInsn(moveImm, 1))
	if err == nil || !strings.Contains(err.Error(), ": ") {
		t.Errorf("a program without an end: %v", err)
	}
	if _, err = LoadCgroupDevice("x", allow[:9]); err == nil {
		t.Error("a torn instruction is taken")
	}
}
