package program

import "golang.org/x/sys/unix"

// EndBySignal lets a signal end the process with status 128 and its number, as a shell
// tells it. Of a signal that has no handler, the first process of a pid namespace
// hears nothing (pid_namespaces(7)). The handler is gone with the next execve.
func (b *Builder) EndBySignal(signal unix.Signal) *Op {
	if b.endAction == (Addr{}) {
		// struct sigaction: the handler, flags, and where the handler would return to,
		// without which amd64 calls none. This one does not return.
		const restorer = 0x04000000
		b.endAction = b.Words(Imm(imageBase+handlerStart), Imm(restorer), Int(0), Int(0))
	}
	return b.Call(unix.SYS_RT_SIGACTION, Int(int64(signal)), b.endAction.Arg(), Int(0), Int(8))
}
