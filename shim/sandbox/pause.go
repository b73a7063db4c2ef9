package sandbox

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/engine/program"
)

// pauseReport is where the program would report a system call that fails:
// standard error.
const pauseReport = 2

// pause is an executable of a few KB that waits for ever, as the first process
// of a pid namespace or outside of one.
//
// It ignores SIGCHLD: the kernel then reaps its children by itself, the orphans
// that a pid namespace gives to its first process among them (wait(2), notes).
// Nothing else can wake it there, for a first process is sent only signals that
// it handles, and it handles none.
func pause() ([]byte, error) {
	const ignore, noChildWait = 1, 2 // SIG_IGN, SA_NOCLDWAIT
	b := program.NewBuilder()
	b.Because("", "ignore the end of children")
	action := b.Words(program.Int(ignore), program.Int(noChildWait), program.Int(0), program.Int(0))
	b.Call(unix.SYS_RT_SIGACTION, program.Int(int64(unix.SIGCHLD)), action.Arg(), program.Int(0), program.Int(8))
	b.Because("", "wait")
	b.Call(unix.SYS_PPOLL, program.Int(0), program.Int(0), program.Int(0), program.Int(0), program.Int(0))
	p, err := b.Build(pauseReport)
	if err == nil {
		var image []byte
		if image, err = p.Image(); err == nil {
			return image, nil
		}
	}
	return nil, fmt.Errorf("make the program that a sandbox waits in: %w", err)
}
