//go:build !amd64 && !arm64

package openfiles

// First is not known on this machine.
func First() (soft, hard uint64, ok bool) { return 0, 0, false }

// Free is not known on this machine.
func Free() (fd int, known bool) { return 0, false }
