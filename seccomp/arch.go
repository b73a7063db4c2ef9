package seccomp

import (
	"runtime"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/seccomp/internal/sysnum"
)

// An arch is what a filter has to know of one architecture of the spec.
type arch struct {
	name  specs.Arch
	audit uint32 // AUDIT_ARCH_*: what seccomp_data.arch holds
	table *sysnum.Table
	// wide says that arguments are compared in 64 bits. On the others the upper half is nothing a
	// program can set, or, with x32 and n32, nothing that its C types reach: there, as in
	// libseccomp, the lower half alone counts.
	wide      bool
	bigEndian bool
	// A kernel runs the architectures of one family only, so that a filter never meets any other.
	family family
}

type family uint8

const (
	familyX86 family = iota
	familyARM
	familyMIPS
	familyMIPSEL
	familyPPC
	familyPPCLE
	familyS390
	familyPARISC
	familyRISCV
	familyLoongArch
	familyM68K
	familySH
	familySHEB
)

// The parts of AUDIT_ARCH_* beside the ELF machine number, <linux/audit.h>.
const (
	audit64  = 0x80000000
	auditLE  = 0x40000000
	auditN32 = 0x20000000
)

// x32Bit is __X32_SYSCALL_BIT. An x32 call has the AUDIT_ARCH of x86-64; this bit of its number
// tells them apart.
const x32Bit = 0x40000000

// archs is in the order of the spec's list. The machine numbers are those of <linux/elf-em.h>.
var archs = [...]arch{
	{name: specs.ArchX86, audit: 3 | auditLE, table: &sysnum.X86, family: familyX86},
	{name: specs.ArchX86_64, audit: 62 | audit64 | auditLE, table: &sysnum.X86_64, wide: true, family: familyX86},
	{name: specs.ArchX32, audit: 62 | audit64 | auditLE, table: &sysnum.X32, family: familyX86},
	{name: specs.ArchARM, audit: 40 | auditLE, table: &sysnum.ARM, family: familyARM},
	{name: specs.ArchAARCH64, audit: 183 | audit64 | auditLE, table: &sysnum.ARM64, wide: true, family: familyARM},
	{name: specs.ArchMIPS, audit: 8, table: &sysnum.MIPSO32, bigEndian: true, family: familyMIPS},
	{name: specs.ArchMIPS64, audit: 8 | audit64, table: &sysnum.MIPSN64, wide: true, bigEndian: true, family: familyMIPS},
	{name: specs.ArchMIPS64N32, audit: 8 | audit64 | auditN32, table: &sysnum.MIPSN32, bigEndian: true, family: familyMIPS},
	{name: specs.ArchMIPSEL, audit: 8 | auditLE, table: &sysnum.MIPSO32, family: familyMIPSEL},
	{name: specs.ArchMIPSEL64, audit: 8 | audit64 | auditLE, table: &sysnum.MIPSN64, wide: true, family: familyMIPSEL},
	{name: specs.ArchMIPSEL64N32, audit: 8 | audit64 | auditLE | auditN32, table: &sysnum.MIPSN32, family: familyMIPSEL},
	{name: specs.ArchPPC, audit: 20, table: &sysnum.PPC, bigEndian: true, family: familyPPC},
	{name: specs.ArchPPC64, audit: 21 | audit64, table: &sysnum.PPC64, wide: true, bigEndian: true, family: familyPPC},
	{name: specs.ArchPPC64LE, audit: 21 | audit64 | auditLE, table: &sysnum.PPC64, wide: true, family: familyPPCLE},
	{name: specs.ArchS390, audit: 22, table: &sysnum.S390, bigEndian: true, family: familyS390},
	{name: specs.ArchS390X, audit: 22 | audit64, table: &sysnum.S390X, wide: true, bigEndian: true, family: familyS390},
	{name: specs.ArchPARISC, audit: 15, table: &sysnum.PARISC, bigEndian: true, family: familyPARISC},
	{name: specs.ArchPARISC64, audit: 15 | audit64, table: &sysnum.PARISC64, wide: true, bigEndian: true, family: familyPARISC},
	{name: specs.ArchRISCV64, audit: 243 | audit64 | auditLE, table: &sysnum.RISCV64, wide: true, family: familyRISCV},
	{name: specs.ArchLOONGARCH64, audit: 258 | audit64 | auditLE, table: &sysnum.LOONGARCH64, wide: true, family: familyLoongArch},
	{name: specs.ArchM68K, audit: 4, table: &sysnum.M68K, bigEndian: true, family: familyM68K},
	{name: specs.ArchSH, audit: 42 | auditLE, table: &sysnum.SH, family: familySH},
	{name: specs.ArchSHEB, audit: 42, table: &sysnum.SH, bigEndian: true, family: familySHEB},
}

func archByName(name specs.Arch) *arch {
	for i := range archs {
		if archs[i].name == name {
			return &archs[i]
		}
	}
	return nil
}

// archOf is the architecture of a call as the kernel tells of it, nil if the spec has no name for
// it.
func archOf(audit, number uint32) *arch {
	for i := range archs {
		a := &archs[i]
		switch {
		case a.audit != audit:
		case a.name == specs.ArchX86_64 && number&x32Bit != 0, a.name == specs.ArchX32 && number&x32Bit == 0:
		default:
			return a
		}
	}
	return nil
}

// NativeArch is the architecture that this program was built for, or "" where the spec has no name
// for it.
func NativeArch() specs.Arch {
	switch runtime.GOARCH {
	case "386":
		return specs.ArchX86
	case "amd64":
		return specs.ArchX86_64
	case "arm":
		return specs.ArchARM
	case "arm64":
		return specs.ArchAARCH64
	case "loong64":
		return specs.ArchLOONGARCH64
	case "mips":
		return specs.ArchMIPS
	case "mips64":
		return specs.ArchMIPS64
	case "mips64le":
		return specs.ArchMIPSEL64
	case "mipsle":
		return specs.ArchMIPSEL
	case "ppc64":
		return specs.ArchPPC64
	case "ppc64le":
		return specs.ArchPPC64LE
	case "riscv64":
		return specs.ArchRISCV64
	case "s390x":
		return specs.ArchS390X
	}
	return ""
}

// SyscallNumber is the number of a system call on an architecture, as the kernel shows it to
// filters: with the base of the MIPS ABIs and the x32 bit. The second result is false where there
// is no such call.
func SyscallNumber(name specs.Arch, syscall string) (uint32, bool) {
	a := archByName(name)
	if a == nil {
		return 0, false
	}
	return a.table.NumberOf(syscall)
}

// ArchOf is the architecture of a call as the kernel's log tells of it: by AUDIT_ARCH_*, and the
// number, by which x32 differs from x86-64. It is "" where the spec has no name for it.
func ArchOf(audit, number uint32) specs.Arch {
	if a := archOf(audit, number); a != nil {
		return a.name
	}
	return ""
}

// SyscallName is the name of the system call behind a number, as filters see it. The second result
// is false where there is no such call.
func SyscallName(name specs.Arch, number uint32) (string, bool) {
	a := archByName(name)
	if a == nil {
		return "", false
	}
	return a.table.NameOf(number)
}

// filtered chooses the architectures that the filter is for: the native one, which is in each
// filter as the program that loads it runs on it, and those listed that the same kernel can run.
func filtered(native *arch, listed []*arch) []*arch {
	list := []*arch{native}
	for _, a := range listed {
		if a.family == native.family && !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return list
}
