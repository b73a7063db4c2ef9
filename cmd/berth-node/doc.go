// Berth-node divides a node between system daemons, Kubernetes and workloads.
// See berth-node --help.
package main
