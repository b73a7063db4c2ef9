//go:build amd64 || arm64

package openfiles

// first is the limit, soft and hard, as getrlimit(2) gave it.
var first [2]uint64

// failed is what the call returned, 0 but where a seccomp filter refuses it.
var failed = getrlimit(&first)

// free is the first descriptor behind the standard streams that was not open.
var free = firstFree()

func firstFree() int {
	fd := 3
	for getfd(fd) >= 0 {
		fd++
	}
	return fd
}

// First is the limit that this process was started with.
func First() (soft, hard uint64, ok bool) { return first[0], first[1], failed == 0 }

// Free is the first descriptor behind the standard streams that was not open when this
// process was started: what has that number or a higher one by now may be our own.
func Free() (fd int, known bool) { return free, true }

// getrlimit asks for RLIMIT_NOFILE by prlimit64(2), and getfd for the flags of a
// descriptor by fcntl(2), below 0 where it is not open. Package syscall can't be asked to.
func getrlimit(limit *[2]uint64) int
func getfd(fd int) int
