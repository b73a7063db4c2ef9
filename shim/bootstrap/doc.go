// Package bootstrap is what a shim does when containerd executes it: start,
// delete, -info and -v. Each prints its answer and is gone in a few
// milliseconds; start leaves a server behind, or finds one.
//
// containerd from 1.6 on is understood: those before 2.3 send the bare options
// and are answered by a plain address, which makes every one of them use version 2
// of the task service; later ones send and get protocol buffers. Nothing may be
// printed beside the answer, for containerd reads both of our streams as one.
//
// The package makes sockets, forks the server, and cleans up after one that has
// died. It does not serve.
package bootstrap
