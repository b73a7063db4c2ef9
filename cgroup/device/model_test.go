package device

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
)

// runProgram interprets a device program on one access, and checks what the
// kernel's verifier would: every jump lands in the program, going forward, and
// the answer is 0 or 1.
func runProgram(code []byte, t Type, major, minor uint32, access Access) (bool, error) {
	kind := uint32(devBlock)
	if t == Char {
		kind = devChar
	}
	ctx := map[int16]uint32{0: uint32(access)<<16 | kind, 4: major, 8: minor}
	var reg [11]uint64
	var set [11]bool
	set[1] = true
	for pc := 0; ; pc++ {
		if pc < 0 || (pc+1)*insnSize > len(code) {
			return false, fmt.Errorf("ran off the program at %d", pc)
		}
		raw := code[pc*insnSize:]
		op, regs := raw[0], raw[1]
		dst, src := regs&15, regs>>4
		if nibbleSwapped {
			dst, src = src, dst
		}
		off := int16(binary.NativeEndian.Uint16(raw[2:]))
		imm := binary.NativeEndian.Uint32(raw[4:])
		jump := false
		switch op {
		case 0x61: // LDX MEM W
			v, ok := ctx[off]
			if src != 1 || !ok {
				return false, fmt.Errorf("%d: load of %d from register %d", pc, off, src)
			}
			reg[dst], set[dst] = uint64(v), true
			continue
		case 0xbc: // ALU MOV X
			if !set[src] {
				return false, fmt.Errorf("%d: register %d is not set", pc, src)
			}
			reg[dst], set[dst] = uint64(uint32(reg[src])), true
			continue
		case 0xb7: // ALU64 MOV K
			reg[dst], set[dst] = uint64(int64(int32(imm))), true
			continue
		case 0x95: // EXIT
			if !set[0] || reg[0] > 1 {
				return false, fmt.Errorf("%d: answer %d", pc, reg[0])
			}
			return reg[0] == 1, nil
		case 0x05: // JA
			jump = true
		default:
			if !set[dst] {
				return false, fmt.Errorf("%d: register %d is not set", pc, dst)
			}
			switch op {
			case 0x54: // ALU AND K
				reg[dst] = uint64(uint32(reg[dst]) & imm)
				continue
			case 0xa4: // ALU XOR K
				reg[dst] = uint64(uint32(reg[dst]) ^ imm)
				continue
			case 0x4c: // ALU OR X
				if !set[src] {
					return false, fmt.Errorf("%d: register %d is not set", pc, src)
				}
				reg[dst] = uint64(uint32(reg[dst]) | uint32(reg[src]))
				continue
			case 0x74: // ALU RSH K
				reg[dst] = uint64(uint32(reg[dst]) >> imm)
				continue
			case 0x56: // JMP32 JNE K
				jump = uint32(reg[dst]) != imm
			case 0x46: // JMP32 JSET K
				jump = uint32(reg[dst])&imm != 0
			default:
				return false, fmt.Errorf("%d: opcode %#x", pc, op)
			}
		}
		if off < 0 {
			return false, fmt.Errorf("%d: jump back", pc)
		}
		if jump {
			pc += int(off)
		}
	}
}

// v1Model does what the kernel does with lines in devices.allow and
// devices.deny of a cgroup below one that allows everything
// (devcgroup_update_access and devcgroup_legacy_check_permission).
type v1Model struct {
	allow      bool
	exceptions []Rule
}

func (m *v1Model) write(l Line) {
	fields := strings.Fields(l.Text)
	if fields[0] == "a" {
		m.allow, m.exceptions = l.Allow, nil
		return
	}
	e, err := parseList(l.Text)
	if err != nil || len(e.order) != 1 {
		panic(fmt.Sprintf("line %q: %v", l.Text, err))
	}
	q, access := e.order[0], e.set[e.order[0]]
	for i := range m.exceptions {
		x := &m.exceptions[i]
		if x.pattern() != q {
			continue
		}
		if l.Allow == m.allow { // an exception is taken back
			x.Access &^= access
		} else {
			x.Access |= access
		}
		return
	}
	if l.Allow != m.allow {
		m.exceptions = append(m.exceptions, Rule{l.Allow, q.typ, q.major, q.minor, access, 0})
	}
}

func (m *v1Model) allows(t Type, major, minor uint32, access Access) bool {
	device := pattern{t, int64(major), int64(minor)}
	for _, x := range m.exceptions {
		if x.Access == 0 || !x.pattern().covers(device) {
			continue
		}
		if m.allow && access&x.Access != 0 {
			return false
		}
		if !m.allow && access&^x.Access == 0 {
			return true
		}
	}
	return m.allow
}

// list is the model's devices.list.
func (m *v1Model) list() string {
	if m.allow {
		return "a *:* rwm\n"
	}
	s := ""
	for _, x := range m.exceptions {
		if x.Access != 0 {
			s += x.String() + "\n"
		}
	}
	return s
}

// lastWins is the meaning of a list of rules, said as simply as can be.
func lastWins(rules []Rule, t Type, major, minor uint32, access Access) bool {
	for _, one := range []Access{Read, Write, Mknod} {
		if access&one == 0 {
			continue
		}
		allowed := false
		for _, r := range rules {
			if (r.Type == AnyType || r.Type == t) && (r.Major == Any || r.Major == int64(major)) &&
				(r.Minor == Any || r.Minor == int64(minor)) && r.Access&one != 0 {
				allowed = r.Allow
			}
		}
		if !allowed {
			return false
		}
	}
	return true
}

// randomRules draws from few numbers, so that rules meet.
func randomRules(r *rand.Rand, n int) []Rule {
	number := func() int64 { return int64(r.IntN(4)) - 1 }
	rules := make([]Rule, n)
	for i := range rules {
		rules[i] = Rule{r.IntN(3) > 0, []Type{AnyType, Block, Char}[r.IntN(3)], number(), number(), Access(r.IntN(7) + 1), i}
		if r.IntN(3) == 0 {
			rules[i].Access = All
		}
	}
	return rules
}

// everyAccess calls f for each access to each device that rules of
// randomRules tell apart, and one that none of them names.
func everyAccess(f func(t Type, major, minor uint32, access Access)) {
	for _, t := range []Type{Block, Char} {
		for major := range uint32(4) {
			for minor := range uint32(4) {
				for access := range All + 1 {
					f(t, major, minor, access)
				}
			}
		}
	}
}
