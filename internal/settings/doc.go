// Package settings has what is set for all of a host, in /etc/berth/berth.toml: what makes the
// cgroups of containers, where they are if nothing names their place, and where the state is kept.
// berth, the shim and berth-node read it, and options of theirs override it. berth-node writes the
// parent there.
//
// Reading is on the path of every command: an open, and if the file exists, a look at whose it is,
// a read and a close.
// The file is strict: unknown and duplicate keys and wrong values are errors with the line.
package settings
