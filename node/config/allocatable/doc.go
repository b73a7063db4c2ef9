// Package allocatable is the arithmetic of a node: what is left for workloads of
// what a machine has, once the reservations and the eviction thresholds are off.
//
//	Allocatable = Capacity − Kube − System − Eviction        (reported)
//	Limit       = Capacity − Kube − System                   (enforced on the workloads)
//
// Memory in huge pages is off both: the kernel has set it apart, and no process
// gets it as ordinary memory. Shares and fractions are rounded up, so that a
// reservation is never less than what was written. It is pure.
package allocatable
