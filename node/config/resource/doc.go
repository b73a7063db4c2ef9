// Package resource names what a node has and gives away: cpu, memory, pids,
// ephemeral storage and huge pages by their size, as Kubernetes names them.
//
// Amounts are whole numbers: thousandths of a processor, bytes, and counts. It
// is pure: what a machine has is found by node/machine.
package resource
