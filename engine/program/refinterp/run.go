package refinterp

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/engine/program"
)

// A Kernel makes the system calls of a Program.
type Kernel interface {
	// Call returns what the kernel would: a result, or -errno. gone says that
	// the call does not return, because the process ended or became another.
	Call(nr uint32, args [6]uint64, mem *Memory) (result int64, gone bool)
}

type header struct {
	Count    uint64
	Ops      uint64
	Fuel     uint32
	ReportFD uint32
}

type op struct {
	Nr        uint32
	ZeroFails bool
	AnyErrno  bool
	Retry     bool
	KeepErrno bool
	Args      [6]uint64
	Out       uint64
	Jump      uint32
	Errnos    [6]uint16
}

const (
	headerLen = 48
	recordAt  = 24 // in the header
	waitAt    = 40
	opLen     = 80
	maxErrno  = 4095
)

// A Result says how a Program ended.
type Result struct {
	Gone    bool             // a call did not return; otherwise the Program exited
	Status  int              // the exit status
	Failure *program.Failure // what was reported, nil if nothing failed
	Memory  *Memory          // the segment as the Program left it
}

// Run runs the Program in the segment (Program.Segment), which it copies. The
// error is about a segment that no Builder makes: the real interpreter would
// have been killed by SIGSEGV.
func Run(segment []byte, k Kernel) (Result, error) {
	mem := &Memory{base: program.SegmentAddress, bytes: bytes.Clone(segment)}
	r := Result{Memory: mem}
	h, err := decodeHeader(mem)
	if err != nil {
		return r, err
	}
	fuel := h.Fuel
	for index := uint64(0); index < h.Count; {
		o, err := decodeOp(mem, h.Ops+index*opLen)
		if err != nil {
			return r, fmt.Errorf("op %d: %w", index, err)
		}
		result := int64(o.Args[0])
		if o.Nr != program.Set {
			var gone bool
			if result, gone = k.Call(o.Nr, o.Args, mem); gone {
				r.Gone = true
				return r, nil
			}
		}
		if o.ZeroFails && result == 0 {
			result = -int64(unix.EPIPE)
		}
		if result >= 0 || result < -maxErrno {
			if o.Out != 0 && !mem.PutUint64(o.Out, uint64(result)) {
				return r, fmt.Errorf("op %d: the result goes to %#x, outside the segment", index, o.Out)
			}
			index++
			continue
		}
		errno := unix.Errno(-result)
		again := o.Retry && errno == unix.EAGAIN
		if !again && !o.expects(errno) {
			return fail(r, k, h, index, o.Nr, errno)
		}
		if fuel == 0 {
			return fail(r, k, h, index, o.Nr, unix.ELOOP)
		}
		fuel--
		if o.KeepErrno && !again && !mem.PutUint64(o.Out, uint64(result)) {
			return r, fmt.Errorf("op %d: the errno goes to %#x, outside the segment", index, o.Out)
		}
		if !again {
			index = uint64(o.Jump)
		}
	}
	return r, nil
}

func (o *op) expects(errno unix.Errno) bool {
	for _, e := range o.Errnos {
		if unix.Errno(e) == errno {
			return true
		}
	}
	return o.AnyErrno
}

// fail reports the failure and waits for the parent, as the last two calls.
func fail(r Result, k Kernel, h header, index uint64, nr uint32, errno unix.Errno) (Result, error) {
	record := r.Memory.base + recordAt
	r.Memory.PutUint64(record+4, index|uint64(errno)<<32)
	number, _ := r.Memory.Bytes(record+12, 4)
	binary.LittleEndian.PutUint32(number, nr)
	b, _ := r.Memory.Bytes(record, program.RecordLen)
	f, ok := program.ParseFailure(b)
	if !ok {
		return r, fmt.Errorf("op %d: its failure cannot be told in a record: % x", index, b)
	}
	r.Failure = &f
	r.Status = 1
	fd := uint64(h.ReportFD)
	for _, call := range []struct {
		nr   uint32
		args [6]uint64
	}{
		{unix.SYS_SENDTO, [6]uint64{fd, record, program.RecordLen, unix.MSG_NOSIGNAL}},
		{unix.SYS_READ, [6]uint64{fd, r.Memory.base + waitAt, 1}},
	} {
		if _, r.Gone = k.Call(call.nr, call.args, r.Memory); r.Gone {
			break
		}
	}
	return r, nil
}

func decodeHeader(mem *Memory) (header, error) {
	var h header
	b, ok := mem.Bytes(mem.base, headerLen)
	if !ok {
		return h, fmt.Errorf("decode program: %d bytes do not hold the header", len(mem.bytes))
	}
	le := binary.LittleEndian
	h.Count, h.Ops = le.Uint64(b), le.Uint64(b[8:])
	h.Fuel, h.ReportFD = le.Uint32(b[16:]), le.Uint32(b[20:])
	if h.Count > program.MaxOps {
		return h, fmt.Errorf("decode program: %d ops", h.Count)
	}
	if _, ok := mem.Bytes(h.Ops, int(h.Count)*opLen); !ok {
		return h, fmt.Errorf("decode program: %d ops at %#x are outside the segment", h.Count, h.Ops)
	}
	return h, nil
}

// decodeOp reads an op and loads the arguments that are in cells.
func decodeOp(mem *Memory, addr uint64) (op, error) {
	b, _ := mem.Bytes(addr, opLen) // inside the segment, decodeHeader has looked
	le := binary.LittleEndian
	o := op{
		Nr:        le.Uint32(b),
		ZeroFails: b[4]&1 != 0,
		AnyErrno:  b[4]&2 != 0,
		Retry:     b[4]&4 != 0,
		KeepErrno: b[4]&8 != 0,
		Out:       le.Uint64(b[56:]),
		Jump:      le.Uint32(b[64:]),
	}
	for i := range o.Args {
		o.Args[i] = le.Uint64(b[8+8*i:])
		if b[5]>>i&1 == 0 {
			continue
		}
		v, ok := mem.Uint64(o.Args[i])
		if !ok {
			return o, fmt.Errorf("argument %d is loaded from %#x, outside the segment", i, o.Args[i])
		}
		o.Args[i] = v
	}
	for i := range o.Errnos {
		o.Errnos[i] = le.Uint16(b[68+2*i:])
	}
	return o, nil
}
