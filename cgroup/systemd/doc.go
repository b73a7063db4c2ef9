// Package systemd starts, changes, freezes and stops the unit of a container,
// by D-Bus calls to the system's systemd or a user's.
//
// A Manager connects when it is first asked for something: the root user by
// systemd's own socket or the system bus, others by their user bus. Everything
// that a unit is to have goes into the one StartTransientUnit call; Start, Stop
// and the end of their jobs have a deadline. What systemd has no property for is
// written to the cgroup's files by package cgroup, which this package does not
// use: it touches no files but the sockets.
//
// Names and annotations are in cgroup/systemd/unit, which a plan can use without
// a bus; what a resource becomes is in cgroup/ledger.
package systemd
