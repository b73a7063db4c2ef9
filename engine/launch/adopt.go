package launch

// Adopt takes a child of ours that another process created, and that runs no
// Program: one that criu has restored. The pidfd, if not -1, is taken over.
func Adopt(pid, pidfd int) *Child { return &Child{Pid: pid, PidFD: pidfd, report: -1} }
