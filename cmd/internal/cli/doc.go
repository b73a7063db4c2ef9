// Package cli parses command lines by definitions that are data.
//
// Help texts, man pages and shell completions come from the same definitions, so they can't differ
// from what is accepted. The rules are those that clients of OCI runtimes rely on: one dash or two,
// options before or after arguments, letters apart or bundled (-nvr). It is small because it is on
// the path of every start; it knows nothing of containers.
package cli
