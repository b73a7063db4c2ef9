// Package cli reads command lines by definitions that are data.
//
// The same definitions make the help texts, the man pages and the completions of
// the shells, so these can't differ from what is accepted. The rules are those
// that clients of OCI runtimes rely on: one dash or two, options before or after
// arguments, letters apart or together (-nvr). It is small because it is on the way of every start;
// it knows nothing of containers.
package cli
