// Package wait is how tests wait for what nothing can be asked to wait for: they look again
// until it is so. It is for tests only. Whatever tells of itself (a pidfd, a pipe, a child)
// is waited for by that, and not here.
package wait
