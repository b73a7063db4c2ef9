// Package ledger says what each resource of the OCI runtime spec becomes on
// a host: one table, as data, with the cgroup v1 file, the cgroup v2 file, the
// systemd properties on either with the least systemd version, and the
// conversion in between.
//
// Translate turns a resources object into the writes for a layout of
// hierarchies, Properties into systemd unit properties and the writes that are
// left. Both are pure: what they need to know of the host stands in Layout, and
// what they need of the cgroup itself is asked through Options.Present. Nothing
// in here opens a file, talks to a bus or knows a path; package cgroup and
// cgroup/systemd do. Device rules are in cgroup/device, because they are no
// plain value on either version.
package ledger
