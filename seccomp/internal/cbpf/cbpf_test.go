package cbpf

import (
	"encoding/binary"
	"testing"
)

func TestCheck(t *testing.T) {
	ret := Instruction{Code: Return}
	for _, test := range []struct {
		name    string
		program []Instruction
		at      int // of the fault, or -1
	}{
		{"least", []Instruction{ret}, -1},
		{"empty", nil, 0},
		{"longest", make2(MaxInstructions, ret), -1},
		{"too long", make2(MaxInstructions+1, ret), 0},
		{"no end", []Instruction{ret, {Code: LoadWord}}, 1},
		{"last word", []Instruction{{Code: LoadWord, K: 60}, ret}, -1},
		{"past the data", []Instruction{{Code: LoadWord, K: 64}, ret}, 0},
		{"between words", []Instruction{{Code: LoadWord, K: 6}, ret}, 0},
		{"jump to the last", []Instruction{{Code: JumpEqual, Jt: 1}, ret, ret}, -1},
		{"jump past it", []Instruction{{Code: JumpEqual, Jf: 2}, ret, ret}, 0},
		{"long jump to the last", []Instruction{{Code: Jump, K: 1}, ret, ret}, -1},
		{"long jump past it", []Instruction{ret, {Code: Jump, K: 1}, ret}, 1},
		{"long jump around the world", []Instruction{{Code: Jump, K: 0xffffffff}, ret}, 0},
		{"a byte", []Instruction{{Code: 0x30}, ret}, 0},
		{"a division", []Instruction{{Code: 0x34, K: 1}, ret}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := Check(test.program)
			if test.at < 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if fault, ok := err.(*FaultError); !ok || fault.At != test.at {
				t.Errorf("%v, want a fault at %d", err, test.at)
			}
		})
	}
}

func make2(n int, ins Instruction) []Instruction {
	program := make([]Instruction, n)
	for i := range program {
		program[i] = ins
	}
	return program
}

func TestRun(t *testing.T) {
	data := &Data{Number: 0x11223344, Arch: 0xc000003e, IP: 0x0102030405060708, Args: [6]uint64{0x1111111122222222, 0, 0, 0, 0, 0x3333333344444444}}
	load := func(offset uint32) []Instruction {
		return []Instruction{{Code: LoadWord, K: offset}, {Code: ReturnA}}
	}
	for _, test := range []struct {
		name    string
		program []Instruction
		big     bool
		want    uint32
		steps   int
	}{
		{"number", load(0), false, 0x11223344, 2},
		{"arch", load(4), true, 0xc000003e, 2},
		{"ip", load(8), false, 0x05060708, 2},
		{"ip, big endian", load(8), true, 0x01020304, 2},
		{"low", load(16), false, 0x22222222, 2},
		{"high", load(20), false, 0x11111111, 2},
		{"big high", load(16), true, 0x11111111, 2},
		{"big low", load(20), true, 0x22222222, 2},
		{"last", load(60), false, 0x33333333, 2},
		{"and", []Instruction{{Code: LoadWord}, {Code: And, K: 0xff00}, {Code: ReturnA}}, false, 0x3300, 3},
		{"goto", []Instruction{{Code: Jump, K: 1}, {Code: Return, K: 1}, {Code: Return, K: 2}}, false, 2, 2},
		{"equal", []Instruction{{Code: LoadWord}, {Code: JumpEqual, K: 0x11223344, Jt: 1}, {Code: Return, K: 1}, {Code: Return, K: 2}}, false, 2, 3},
		{"not greater", []Instruction{{Code: LoadWord}, {Code: JumpGreater, K: 0x11223344, Jt: 1}, {Code: Return, K: 1}, {Code: Return, K: 2}}, false, 1, 3},
		{"greater without a sign", []Instruction{{Code: LoadWord, K: 4}, {Code: JumpGreater, K: 1, Jt: 1}, {Code: Return, K: 1}, {Code: Return, K: 2}}, false, 2, 3},
		{"greater or equal", []Instruction{{Code: LoadWord}, {Code: JumpGreaterEq, K: 0x11223344, Jf: 1}, {Code: Return, K: 1}, {Code: Return, K: 2}}, false, 1, 3},
		{"set", []Instruction{{Code: LoadWord}, {Code: JumpSet, K: 0x80000004, Jf: 1}, {Code: Return, K: 1}, {Code: Return, K: 2}}, false, 1, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			if err := Check(test.program); err != nil {
				t.Fatal(err)
			}
			if got, steps := Run(test.program, data, test.big); got != test.want || steps != test.steps {
				t.Errorf("%#x after %d, want %#x after %d", got, steps, test.want, test.steps)
			}
		})
	}
}

// FuzzRun: what Check accepts ends, within as many steps as it has instructions.
func FuzzRun(f *testing.F) {
	add := func(program ...Instruction) {
		var data []byte
		for _, ins := range program {
			data = append(binary.LittleEndian.AppendUint16(data, ins.Code), ins.Jt, ins.Jf)
			data = binary.LittleEndian.AppendUint32(data, ins.K)
		}
		f.Add(data)
	}
	ret := Instruction{Code: Return, K: 1}
	add(Instruction{Code: LoadWord, K: OffsetArch}, ret)
	for _, code := range []uint16{JumpEqual, JumpGreater, JumpGreaterEq, JumpSet} {
		add(Instruction{Code: LoadWord, K: OffsetArgs + 4}, Instruction{Code: code, Jt: 1, Jf: 2}, ret, ret, Instruction{Code: ReturnA})
	}
	add(Instruction{Code: Jump, K: 1}, ret, Instruction{Code: LoadWord, K: OffsetIP}, Instruction{Code: And, K: 0xff}, Instruction{Code: ReturnA})
	f.Fuzz(func(t *testing.T, data []byte) {
		var program []Instruction
		for ; len(data) >= 8; data = data[8:] {
			program = append(program, Instruction{binary.LittleEndian.Uint16(data), data[2], data[3], binary.LittleEndian.Uint32(data[4:])})
		}
		if Check(program) != nil {
			return
		}
		if _, steps := Run(program, &Data{Number: 59, Arch: 0xc000003e, IP: 1 << 40, Args: [6]uint64{1 << 32, 2, 3, 4, 5, 6}}, len(program)%2 == 0); steps > len(program) {
			t.Errorf("%d steps for %d instructions", steps, len(program))
		}
	})
}
