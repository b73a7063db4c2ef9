// Package terminal connects the caller's terminal to a container's: raw while the
// container has it, with its size forwarded, and restored at the end.
package terminal
