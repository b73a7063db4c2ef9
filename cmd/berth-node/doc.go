// Berth-node shares out a node between its system, Kubernetes and the workloads.
// See berth-node --help.
package main
