// Package container is the engine's public face: the life cycle of containers on this
// machine, from create to delete.
//
// A container is a directory below the Runtime's root: state.json (the Record), the
// config.json it was made from, a lock, and the gate socket that its first
// process waits at until start. Nothing else holds state; there is no daemon.
//
// The package is crash-only. Before each side effect (directory, cgroup, process)
// the intent is in the Record, so that a later delete with force, at whatever
// instant its maker was killed, finds what there is to undo. A first process
// whose maker is gone before the Record holds its pid ends by itself: it waits
// for an answer over a socket that has closed.
//
// A process is known by pidfd while we hold one, and by pid and start time on
// disk, so a reused pid is never taken for it.
package container
