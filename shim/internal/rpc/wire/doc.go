// Package wire holds the protocol buffer messages that a containerd shim
// speaks: the task, sandbox and event services, the bootstrap, options and
// introspection messages, the cgroup metrics, and ttrpc's own envelope.
//
// Each message says its fields once, in a method that the encoder and the
// decoder both walk, so the two directions cannot drift apart. There is no
// reflection and no initialiser: google.golang.org/protobuf would add about
// half a millisecond to every execution of the shim and a megabyte to every
// running one, and containerd executes it three times for each container. The
// tests hold every message against the generated types of containerd/api and
// containerd/cgroups.
//
// The package only turns bytes into structs and back: no I/O, no other package
// of this module.
package wire
