//lint:file-ignore U1000 the assembly uses what Go does not

package entry

import (
	"runtime"
	"syscall"
)

// A program whose first environment variable is KeeperVariable is parted in two before Go begins in
// it: the keeper, which stays what it is, and a child that goes on as the program. Both have one
// table of descriptors (CLONE_FILES), so that what the program opens is not closed when it is
// killed. The keeper is then its parent and the subreaper of its children: it executes the program
// file once more, in its own process, with all descriptors as they were, and is parted again.
//
// They talk by a page of shared memory, which is descriptor MemoryFD; package shim/keeper has the
// other side, and says what is where.
const (
	KeeperVariable = "BERTH_KEEPER=1"
	MemoryFD       = 5

	// Again is the exit status of a program that is to be executed anew without anything being
	// wrong, and Deaths how many others in a minute are too many.
	Again  = 75
	Deaths = 5
)

// What the page holds, by offset.
const (
	OffMagic   = 0
	OffDeaths  = 8   // uint32: so far
	OffKeep    = 12  // uint32: 0 is to end with the program
	OffMaxFD   = 16  // uint32: the greatest descriptor that is kept
	OffRequest = 20  // uint32, a futex: 1 is asked, 2 answered
	OffIDType  = 24  // uint32: the arguments of a waitid(2) that is asked for
	OffID      = 28  // uint32
	OffOptions = 32  // uint32
	OffResult  = 36  // int32: what it gave
	OffInfo    = 40  // 128 bytes: siginfo_t
	OffCode    = 168 // int32: si_code of the last death
	OffStatus  = 172 // int32: and si_status
	OffTimes   = 176 // eight uint64: when the last deaths were, in seconds
	OffStage   = 240 // uint32: of an upgrade, see below
	OffUndo    = 256 // the path of the program that is executed if the next one fails, of 63 bytes at most
	OffProgram = 320 // and of the next one, of 1023

	PageRoom = 2048 // the rest of the page is the program's
)

// The stages of an upgrade: whichever program comes next is executed in the keeper's process, so
// that the new one's keeper is its own.
const (
	StageNone  = 0
	StageAsked = 1 // the program at OffProgram is next
	StageTried = 2 // it has been executed: unless it sets StageNone, that at OffUndo is next
	StageBack  = 3 // that has been
)

// Magic is what is at OffMagic.
const Magic = 0x6b6565702d627274

// kept is set in the child of a keeper.
var kept bool

// Kept says whether this process has a keeper.
func Kept() bool { return kept }

// CanKeep says whether this program would have a keeper: it was linked with the entry, and that
// has one for this machine.
func CanKeep() bool { return entered && runtime.GOARCH == "amd64" }

// What a keeper executes, and says: data that is there before Go is.
var (
	ownProgram = "/proc/self/exe\x00"
	givenUp    = `level=error msg="the shim was killed, or failed, 5 times in a minute: it is given up"` + "\n"
)

// maxFD is the greatest descriptor that may have come from a process before this one.
var maxFD uint32

// inherited are those that have.
var inherited []int

// Inherited are the descriptors behind the standard streams, but for the memory, that a program
// before this one has left. All are closed on an execve from now on.
func Inherited() []int { return inherited }

// beginKept keeps the variable from what this program executes, and finds the descriptors before
// package os makes others, as it does where a standard stream does not block.
func beginKept() {
	if !kept {
		return
	}
	_ = syscall.Unsetenv(KeeperVariable[:len(KeeperVariable)-2])
	for fd := 3; fd <= int(maxFD); fd++ {
		_, _, errno := syscall.RawSyscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_SETFD, syscall.FD_CLOEXEC)
		if errno == 0 && fd != MemoryFD {
			inherited = append(inherited, fd)
		}
	}
}
