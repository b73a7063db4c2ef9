// Package metrics reads a container's cgroup for the shim: its counters, as the
// messages that containerd's clients take, and its OOM kills.
//
// On a host with version 2 alone the message is io.containerd.cgroups.v2.Metrics,
// on all others that of version 1; nothing else is accepted by containerd's
// CRI. The package only reads cgroups, through this module's own library.
package metrics
