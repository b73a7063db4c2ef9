// Package argname names the values of system calls' arguments, as the kernel's headers do:
// MS_NOSUID|MS_NODEV for the flags of a mount.
//
// It knows what Berth's own calls and the calls that seccomp profiles refuse have: explain prints a
// Program with it, and a denial says what was refused. It makes no system call, and imports
// nothing of ours but the names of capabilities. Numbers are those of the machine that it is built
// for.
package argname
