// Package supervisor answers the listener of a seccomp filter: it names what the filter refuses,
// and records what it allows, to make a profile of that.
//
// Commands that stay in the foreground serve a listener themselves. Where none stays, under
// containerd and Podman, an annotation has the engine start a process for it, whose main function
// is Process. See docs/decisions/denials.md.
//
// What it decides by is the call as the kernel tells of it; memory of the process is only read for
// what is recorded, never for what is allowed. It stands on package seccomp, and on
// engine/container for where denials are kept.
package supervisor
