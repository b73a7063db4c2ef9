// Package engine defines what the shim needs from the engine that runs its containers.
//
// There are two that fit: this project's own engine, linked into the shim, and
// any OCI runtime's binary, driven by package ociexec. An engine makes
// processes and leaves them to the shim as children; it never waits for them.
// The package holds interfaces and plain data only.
package engine
