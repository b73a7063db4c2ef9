package device

// Offsets in struct bpf_cgroup_dev_ctx: the first word has the type of the
// device in its lower half and the access in its upper one.
const (
	ctxAccessType = 0
	ctxMajor      = 4
	ctxMinor      = 8

	devBlock = 1 // BPF_DEVCG_DEV_BLOCK
	devChar  = 2 // BPF_DEVCG_DEV_CHAR
)

// Registers: 0 is the answer and 1 the context when the program starts.
const (
	regAnswer = 0
	regCtx    = 1
	regAccess = 2 // what is asked for and no rule has allowed yet
	regType   = 3
	regMajor  = 4
	regMinor  = 5
	regMiss   = 6 // 0 where a rule speaks of the device
	regPart   = 7
)

// Program gives the BPF program of type BPF_PROG_TYPE_CGROUP_DEVICE that
// enforces the policy, in the machine's own byte order.
//
// It goes through the rules from the last to the first and strikes what they
// allow from what is asked for. It has no loop, no map, no helper and needs no
// kernel headers: about ten instructions for each rule.
func (p Policy) Program() []byte { return encode(p.program()) }

func (p Policy) program() []insn {
	code := []insn{
		{op: opLoadWord, dst: regAccess, src: regCtx, off: ctxAccessType},
		{op: opMove32, dst: regType, src: regAccess},
		{op: opAndImm32, dst: regType, imm: 0xffff},
		{op: opShiftImm, dst: regAccess, imm: 16},
		{op: opLoadWord, dst: regMajor, src: regCtx, off: ctxMajor},
		{op: opLoadWord, dst: regMinor, src: regCtx, off: ctxMinor},
		// An open for nothing (O_PATH and the like) asks for no access.
		{op: opJumpNE32, dst: regAccess, imm: 0, off: 2},
	}
	code = append(code, answer(true)...)
	for i := len(p.rules) - 1; i >= 0; i-- {
		r := p.rules[i]
		code = append(code, ruleCode(r)...)
		if r.pattern() == (pattern{AnyType, Any, Any}) && r.Access == All {
			return code // nothing gets past it, and verifiers refuse dead code
		}
	}
	return append(code, answer(false)...)
}

func answer(allow bool) []insn {
	imm := int32(0)
	if allow {
		imm = 1
	}
	return []insn{{op: opMoveImm, dst: regAnswer, imm: imm}, {op: opExit}}
}

// ruleCode is a test that jumps behind the rule, and its verdict.
//
// The test is one jump on the sum of all differences. With a jump for each
// number the verifier would learn the number behind it, and walk the rest of the
// program once more with what it knows: 400 rules took it seconds.
func ruleCode(r Rule) []insn {
	var code []insn
	differs := func(reg uint8, value int64) {
		into := uint8(regMiss)
		if len(code) > 0 {
			into = regPart
		}
		code = append(code,
			insn{op: opMove32, dst: into, src: reg},
			insn{op: opXorImm32, dst: into, imm: int32(uint32(value))})
		if into == regPart {
			code = append(code, insn{op: opOr32, dst: regMiss, src: regPart})
		}
	}
	switch r.Type {
	case Block:
		differs(regType, devBlock)
	case Char:
		differs(regType, devChar)
	}
	if r.Major != Any {
		differs(regMajor, r.Major)
	}
	if r.Minor != Any {
		differs(regMinor, r.Minor)
	}
	verdict := verdictCode(r)
	if len(code) > 0 {
		code = append(code, insn{op: opJumpNE32, dst: regMiss, imm: 0, off: int16(len(verdict))})
	}
	return append(code, verdict...)
}

func verdictCode(r Rule) []insn {
	if r.Access == All {
		return answer(r.Allow)
	}
	if r.Allow {
		return append([]insn{
			{op: opAndImm32, dst: regAccess, imm: int32(All &^ r.Access)},
			{op: opJumpNE32, dst: regAccess, imm: 0, off: 2},
		}, answer(true)...)
	}
	return append([]insn{
		{op: opJumpSet32, dst: regAccess, imm: int32(r.Access), off: 1},
		{op: opJump, off: 2},
	}, answer(false)...)
}
