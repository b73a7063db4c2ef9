// Package inventory finds every container of the node, whatever made it, by looking at cgroups. It
// is the one place that knows how containers are recognised:
//
//  1. By the cgroup's name, which is the interface of each engine (name.go has the table).
//  2. By the records of OCI runtimes: berth, runc and crun keep a directory for each container
//     (records.go has their places), with its cgroup. They say which runtime made a container of
//     stage 1, and find those in cgroups that a client has named freely.
//  3. By the pid namespace: what is left and runs in another one than the host's is a container of
//     an unknown maker.
//
// What a container makes inside its own cgroup is its own affair: nothing below one is looked at.
// The package reads the cgroup file systems, /run and /proc, and changes nothing. It knows nothing
// of plans, so that berth uses it as well as berth-node.
package inventory
