// Package kernel is the table of what newer kernels have that this project uses: from which
// Linux on, what for, what is done without it, and what that costs.
//
// The probes, berth doctor, docs/kernel-features.md and the errors of what a kernel lacks all
// go by this table. Nothing is concluded from a kernel's version: what uses a feature tries it.
package kernel
