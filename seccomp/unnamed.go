package seccomp

import (
	"math"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// badArch is the answer to a call of an architecture that the filter is not for. libseccomp kills
// the thread here; a process that lives on without one of its threads is of no use, and seccomp(2)
// advises against it.
const badArch = retKillProcess

// enosys is the result for a call that is newer than the profile. It is what a kernel without the
// call would say, and what a C library takes for the sign to do it the older way; from EPERM, which
// is what most profiles' default says, it can't tell a call that doesn't exist from one that
// failed. runc has the same rule.
//
// A call is newer than the profile if its number is greater than each number that the profile names
// for the architecture: since Linux 5.1 all new calls are appended to the list, with the same
// number everywhere. The rule holds where the default action denies. It doesn't where the default
// lets calls through, or asks another process (TRACE, NOTIFY).
func (p *policy) enosys() (uint32, bool) {
	value := uint32(retErrno | 38)
	switch p.archs[0].family {
	case familyMIPS, familyMIPSEL:
		value = retErrno | 89
	case familyPARISC:
		value = retErrno | 251
	}
	return value, denies(p.fallback)
}

// layTable lays a table out, with what holds for the numbers that the profile doesn't name. x32 is
// nil if it isn't listed.
func (p *policy) layTable(d *dispatch, t, x32 *table) {
	switch {
	case t.name == specs.ArchX32: // alone, with x86 as the native architecture
		d.add(0, d.ret(badArch), 1)
		d.lay(t, x32Bit, math.MaxUint32, p.gaps(d.graph, t, math.MaxUint32))
		return
	case t.name != specs.ArchX86_64:
		d.lay(t, 0, math.MaxUint32, p.gaps(d.graph, t, math.MaxUint32))
		return
	case x32 != nil:
		d.lay(t, 0, x32Bit-1, p.gaps(d.graph, t, x32Bit-1))
		d.lay(x32, x32Bit, math.MaxUint32, p.gaps(d.graph, x32, math.MaxUint32))
		return
	}
	gaps := p.gaps(d.graph, t, math.MaxUint32)
	if len(gaps) == 1 {
		// x32 calls are of an architecture that isn't listed. With the rule for newer calls (two
		// gaps) they get ENOSYS, like on the many kernels that are built without x32, and as with
		// runc. A number of -1 is no call of x32: it is what a tracer puts there to have a call
		// skipped.
		gaps = []gap{{gaps[0].node, x32Bit - 1}, {d.ret(badArch), math.MaxUint32 - 1}, {gaps[0].node, math.MaxUint32}}
	}
	d.lay(t, 0, math.MaxUint32, gaps)
}

// gaps is what holds between the calls of a table, up to the number last.
func (p *policy) gaps(g *graph, t *table, last uint32) []gap {
	byDefault := g.ret(p.fallback)
	value, ok := p.enosys()
	if !ok || !t.known {
		return []gap{{byDefault, last}}
	}
	newer := g.ret(value)
	gaps := []gap{{byDefault, t.newest}}
	if first, last := ageless(t.arch); first <= last {
		gaps = append(gaps, gap{newer, first - 1}, gap{byDefault, last})
	}
	return append(gaps, gap{newer, last})
}
