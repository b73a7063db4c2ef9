// Package terminal puts the caller's terminal at the service of a container's:
// raw while the container has it, its size handed on, and as it was at the end.
package terminal
