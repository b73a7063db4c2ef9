// Package view has everything read-only: what a bundle would become (explain), what a
// container is and uses (inspect, stats, events), and what this build can do (features).
//
// These are functions over a container's record, its Plan and its cgroup, and how each is
// written as text and as JSON. Nothing here changes a container or the host; package
// container does not know of it.
package view
