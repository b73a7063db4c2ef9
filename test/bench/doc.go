// Bench measures Berth beside its peers: `make bench` runs it.
//
// In each row all contenders do the same thing in turns (ours, theirs, ours, …),
// each turn beginning with the next one, so that whatever else the machine does
// meets all of them. What is printed are medians, minima, CPU time and ratios of
// the medians; the same numbers go into docs/performance.json, a plot and the
// tables of docs/performance.md.
//
// crun refuses a host whose controllers are spread over both versions of cgroups,
// so all contenders of a row see the same view: a mount namespace that shows
// version 1 alone, or version 2 alone.
//
// It needs root. It makes cgroups below /berth-bench-PID and a directory in TMPDIR,
// ends only what it has started, and removes all of it. It is no shipped program,
// so it may import what those may not.
package main
