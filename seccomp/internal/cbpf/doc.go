// Package cbpf is classic BPF as seccomp uses it: the instruction, the few operations that a filter
// is built of, the kernel's rules of what it accepts, and an interpreter.
//
// The interpreter and the checker are written from the kernel's documentation
// (Documentation/networking/filter.rst, Documentation/userspace-api/seccomp_filter.rst) and not
// from the compiler, so that each tests the other.
package cbpf
