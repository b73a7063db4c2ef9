//go:build amd64 || arm64

package openfiles

// first is the limit, soft and hard, as getrlimit(2) gave it.
var first [2]uint64

// failed is what the call returned, 0 but where a seccomp filter refuses it.
var failed = getrlimit(&first)

// First is the limit that this process was started with.
func First() (soft, hard uint64, ok bool) { return first[0], first[1], failed == 0 }

// getrlimit asks for RLIMIT_NOFILE by prlimit64(2). Package syscall can't be asked to.
func getrlimit(limit *[2]uint64) int
