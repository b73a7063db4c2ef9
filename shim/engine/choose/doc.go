// Package choose opens the engine that a container's options ask for: the one linked in, or a
// runtime binary.
package choose
