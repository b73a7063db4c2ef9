// Package integration has no code, but the tests of the shim against a real
// containerd: its own daemon on its own directories, spoken to as its clients do.
package integration
