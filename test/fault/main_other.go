//go:build !(linux && amd64)

package main

import (
	"fmt"
	"os"
)

// Registers are changed by hand, which is written for one machine.
func main() {
	fmt.Fprintln(os.Stderr, "fault: works on amd64 alone")
	os.Exit(126)
}
