package sys

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// BPFProgram is a descriptor of a loaded program, close-on-exec as bpf(2) makes
// them. The program lives as long as a descriptor or an attachment does.
type BPFProgram int

// Close closes the descriptor.
func (p BPFProgram) Close() { unix.Close(int(p)) }

// bpfInsnSize is the size of struct bpf_insn.
const bpfInsnSize = 8

// bpfProgLoad is the part of union bpf_attr for BPF_PROG_LOAD, up to what Linux
// 4.15 knows. bpf(2) takes shorter structures as if the rest were zero.
type bpfProgLoad struct {
	progType  uint32
	insnCount uint32
	insns     uint64
	license   uint64
	logLevel  uint32
	logSize   uint32
	logBuf    uint64
	_         [2]uint32 // kern_version, prog_flags
	progName  [unix.BPF_OBJ_NAME_LEN]byte
}

// bpfProgAttach is the one for BPF_PROG_ATTACH and BPF_PROG_DETACH; the last
// field is of Linux 5.6.
type bpfProgAttach struct {
	targetFD    uint32
	attachBPFFD uint32
	attachType  uint32
	attachFlags uint32
	replaceFD   uint32
}

// bpfProgQuery is the one for BPF_PROG_QUERY.
type bpfProgQuery struct {
	targetFD   uint32
	attachType uint32
	_          [2]uint32 // query_flags, attach_flags
	progIDs    uint64
	progCount  uint32
	_          uint32
}

// bpfGetFDByID is the one for BPF_PROG_GET_FD_BY_ID.
type bpfGetFDByID struct {
	id uint32
	_  [2]uint32 // next_id, open_flags
}

// bpfObjInfo is the one for BPF_OBJ_GET_INFO_BY_FD.
type bpfObjInfo struct {
	fd      uint32
	infoLen uint32
	info    uint64
}

// bpfProgInfo is the start of struct bpf_prog_info, of which only the name is
// asked for. The kernel fills in as much as infoLen says.
type bpfProgInfo struct {
	_    [64]byte
	name [unix.BPF_OBJ_NAME_LEN]byte
}

// bpf makes the call. attr must not hold addresses of anything that is not
// pinned.
func bpf[T any](cmd uintptr, attr *T) (int, error) {
	for {
		r, _, errno := unix.Syscall(unix.SYS_BPF, cmd, uintptr(unsafe.Pointer(attr)), unsafe.Sizeof(*attr))
		switch errno {
		case 0:
			return int(r), nil
		case unix.EINTR, unix.EAGAIN:
			// The verifier gives up with EAGAIN when a signal comes, as Go's
			// own preemption does all the time.
		default:
			return -1, errno
		}
	}
}

// LoadCgroupDevice loads a program of type BPF_PROG_TYPE_CGROUP_DEVICE.
func LoadCgroupDevice(name string, insns []byte) (BPFProgram, error) {
	if len(insns) == 0 || len(insns)%bpfInsnSize != 0 {
		return -1, errors.New("no whole instructions")
	}
	p, err := loadCgroupDevice(name, insns, nil)
	if errors.Is(err, unix.EPERM) {
		// Before Linux 5.11 the memory of programs counts against
		// RLIMIT_MEMLOCK, whose usual 64 KiB is soon used up, for root too.
		p, err = withUnlimitedMemlock(func() (BPFProgram, error) { return loadCgroupDevice(name, insns, nil) })
	}
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EACCES) {
		log := make([]byte, 16<<10)
		if again, logged := loadCgroupDevice(name, insns, log); logged == nil {
			return again, nil
		}
		if end := bytes.IndexByte(log, 0); end > 0 {
			return -1, fmt.Errorf("%w: %s", err, lastLine(string(log[:end])))
		}
	}
	return p, err
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

func loadCgroupDevice(name string, insns, log []byte) (BPFProgram, error) {
	license := []byte("Apache-2.0\x00")
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&insns[0])
	pin.Pin(&license[0])
	attr := bpfProgLoad{
		progType:  unix.BPF_PROG_TYPE_CGROUP_DEVICE,
		insnCount: uint32(len(insns) / bpfInsnSize),
		insns:     address(&insns[0]),
		license:   address(&license[0]),
	}
	if len(log) > 0 {
		pin.Pin(&log[0])
		attr.logLevel, attr.logSize, attr.logBuf = 1, uint32(len(log)), address(&log[0])
	}
	copy(attr.progName[:len(attr.progName)-1], name)
	fd, err := bpf(unix.BPF_PROG_LOAD, &attr)
	return BPFProgram(fd), err
}

func address[T any](p *T) uint64 { return uint64(uintptr(unsafe.Pointer(p))) }

// withUnlimitedMemlock raises RLIMIT_MEMLOCK for one call. It is put back at
// once, because a container would inherit it.
func withUnlimitedMemlock(call func() (BPFProgram, error)) (BPFProgram, error) {
	var old unix.Rlimit
	unlimited := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	if err := unix.Prlimit(0, unix.RLIMIT_MEMLOCK, &unlimited, &old); err != nil {
		return -1, unix.EPERM
	}
	p, err := call()
	if e := unix.Prlimit(0, unix.RLIMIT_MEMLOCK, &old, nil); e != nil && err == nil {
		p.Close()
		return -1, fmt.Errorf("put RLIMIT_MEMLOCK back: %w", e)
	}
	return p, err
}

// AttachCgroupDevice adds a program to those of the cgroup. With
// BPF_F_ALLOW_MULTI, programs of others in the cgroup, above and below run too.
func AttachCgroupDevice(cgroup int, p BPFProgram) error {
	attr := bpfProgAttach{
		targetFD:    uint32(cgroup),
		attachBPFFD: uint32(p),
		attachType:  unix.BPF_CGROUP_DEVICE,
		attachFlags: unix.BPF_F_ALLOW_MULTI,
	}
	_, err := bpf(unix.BPF_PROG_ATTACH, &attr)
	return err
}

// ReplaceCgroupDevice puts a program in place of another in one step.
func ReplaceCgroupDevice(cgroup int, p, old BPFProgram) error {
	attr := bpfProgAttach{
		targetFD:    uint32(cgroup),
		attachBPFFD: uint32(p),
		attachType:  unix.BPF_CGROUP_DEVICE,
		attachFlags: unix.BPF_F_ALLOW_MULTI | unix.BPF_F_REPLACE,
		replaceFD:   uint32(old),
	}
	_, err := bpf(unix.BPF_PROG_ATTACH, &attr)
	return err
}

// DetachCgroupDevice takes a program off the cgroup.
func DetachCgroupDevice(cgroup int, p BPFProgram) error {
	attr := bpfProgAttach{targetFD: uint32(cgroup), attachBPFFD: uint32(p), attachType: unix.BPF_CGROUP_DEVICE}
	_, err := bpf(unix.BPF_PROG_DETACH, &attr)
	return err
}

// QueryCgroupDevice gives the ids of the programs that are attached to the
// cgroup itself.
func QueryCgroupDevice(cgroup int) ([]uint32, error) {
	ids := make([]uint32, 8)
	for {
		n, err := queryCgroupDevice(cgroup, ids)
		if errors.Is(err, unix.ENOSPC) {
			// The kernel says how many there are; more may come meanwhile.
			ids = make([]uint32, max(int(n), 2*len(ids)))
			continue
		}
		if err != nil {
			return nil, err
		}
		return ids[:n], nil
	}
}

func queryCgroupDevice(cgroup int, ids []uint32) (uint32, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&ids[0])
	attr := bpfProgQuery{
		targetFD:   uint32(cgroup),
		attachType: unix.BPF_CGROUP_DEVICE,
		progIDs:    address(&ids[0]),
		progCount:  uint32(len(ids)),
	}
	_, err := bpf(unix.BPF_PROG_QUERY, &attr)
	return attr.progCount, err
}

// OpenBPFProgram opens a program by its id, which needs CAP_SYS_ADMIN.
func OpenBPFProgram(id uint32) (BPFProgram, error) {
	fd, err := bpf(unix.BPF_PROG_GET_FD_BY_ID, &bpfGetFDByID{id: id})
	return BPFProgram(fd), err
}

// Name is the name that the program was loaded with, at most 15 bytes.
func (p BPFProgram) Name() (string, error) {
	var info bpfProgInfo
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&info)
	attr := bpfObjInfo{fd: uint32(p), infoLen: uint32(unsafe.Sizeof(info)), info: address(&info)}
	if _, err := bpf(unix.BPF_OBJ_GET_INFO_BY_FD, &attr); err != nil {
		return "", err
	}
	name, _, _ := bytes.Cut(info.name[:], []byte{0})
	return string(name), nil
}
