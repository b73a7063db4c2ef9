// Package task is the task service of containerd's Runtime v2: the containers
// of a shim, their processes, and the calls on them.
//
// The engine makes and changes containers; this package knows in which state
// they are, ties each process to its stdio and its end, and tells containerd
// what has happened, in the order that it wants: a start before the exit that
// follows it, the exits of all execs before that of the init, a delete last.
//
// Two locks guard a container. The one for changes is held through a whole
// call of the engine and keeps start, delete, pause and the like apart; the one
// for state is held for moments only, so that State and Wait always answer.
// Events are published under the latter, which is what puts them in order.
package task
