// Package launch starts a Program and serves it.
//
// Start lays the image of a Program into a sealed memfd, clones a child into its
// new namespaces and cgroup, and executes the image there. The child reports
// over a socket: a failing call as {index, errno}, and the points where it waits
// for the runtime as Asks. Serve answers them through a Handler until the child
// is where the caller wants it.
//
// A failure becomes an *Error that names the config entry and says what was
// being done; for the execve of the user's program the child still waits at that
// moment, and the package looks into its root to say what is wrong with the
// file.
//
// What the Program does is not decided here, nor what becomes of the container:
// see packages compile and container.
package launch
