//go:build !amd64 && !arm64

package openfiles

// Free is not known on this machine.
func Free() (fd int, known bool) { return 0, false }
