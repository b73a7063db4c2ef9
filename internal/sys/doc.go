// Package sys makes the system calls that need unsafe memory, raw structures or a thread
// of their own: BPF, seccomp filters, statmount, waitid, Landlock for ourselves, signals
// caught by a handler of our own, and descriptors that come with a message.
//
// Each call has a typed function and says from which Linux on it is there. What a call is
// for, and what is done where the kernel lacks it, is its caller's to know.
package sys
