// Package mutate damages configs for tests. It knows what is often wrong in one, and
// nothing of what is right; no program uses it.
package mutate
