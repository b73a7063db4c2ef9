// Package enforce carries out the steps of a plan, and undoes them.
//
// Before each step, what was there is on record (node/enforce/record), so that Undo gives
// the node back as it was, and a process that was killed at any instant is
// followed by one that knows all. Under systemd it sets properties of slices by
// D-Bus and nothing else there: it moves no process and writes to no cgroup. With
// cgroupfs it makes cgroups, writes to those that the configuration names, and
// moves processes out of the root.
//
// Memory is never lowered blindly: see lower.go.
package enforce
