// Package kernel is the table of kernel features that this project uses: the minimum Linux
// version, the purpose, the fallback, and its cost.
//
// The probes, berth doctor, docs/kernel-features.md and the errors of what a kernel lacks all
// go by this table. Nothing is concluded from a kernel's version: what uses a feature tries it.
package kernel
