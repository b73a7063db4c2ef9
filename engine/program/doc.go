// Package program turns what must happen inside a container into a flat list
// of system calls, and that list into a process image.
//
// A [Builder] collects calls ([Op]) and the memory their arguments point to;
// Build freezes both into a [Program]. [Program.Image] puts it behind a tiny
// interpreter (interp_*.s, its bytes taken from the running binary's own text)
// in a static ELF file of a few KB, meant for a sealed memfd. The interpreter
// makes the calls one by one; the last one is normally execve. A call that
// fails is reported as a [Failure], whose index leads back to the [Note] that
// says what was being done and which config entry asked for it.
//
// The package knows no container, no Plan and no policy, starts no process and
// makes no system call. Raw memory layouts belong here, nowhere above.
package program
