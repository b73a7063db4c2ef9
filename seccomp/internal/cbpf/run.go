package cbpf

// Run interprets a program that Check accepts. It gives the returned value and the number of
// instructions it took. The byte order is that of the machine whose call it is.
func Run(program []Instruction, data *Data, bigEndian bool) (value uint32, steps int) {
	var a uint32
	for pc := 0; ; pc++ {
		ins := program[pc]
		steps++
		taken := false
		switch ins.Code {
		case LoadWord:
			a = data.word(ins.K, bigEndian)
			continue
		case And:
			a &= ins.K
			continue
		case Jump:
			pc += int(ins.K)
			continue
		case Return:
			return ins.K, steps
		case ReturnA:
			return a, steps
		case JumpEqual:
			taken = a == ins.K
		case JumpGreater:
			taken = a > ins.K
		case JumpGreaterEq:
			taken = a >= ins.K
		case JumpSet:
			taken = a&ins.K != 0
		}
		if taken {
			pc += int(ins.Jt)
		} else {
			pc += int(ins.Jf)
		}
	}
}
