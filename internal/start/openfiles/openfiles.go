//go:build amd64 || arm64

package openfiles

// free is the first descriptor behind the standard streams that was not open.
var free = firstFree()

func firstFree() int {
	fd := 3
	for getfd(fd) >= 0 {
		fd++
	}
	return fd
}

// Free is the first descriptor behind the standard streams that was not open when this
// process was started: what has that number or a higher one by now may be our own.
func Free() (fd int, known bool) { return free, true }

// getfd asks for the flags of a descriptor by fcntl(2); the answer is below 0 where it is
// not open. Package syscall can't be asked to.
func getfd(fd int) int
