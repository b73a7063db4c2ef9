// Package sys makes the system calls that need unsafe memory, raw structures or a thread
// of their own: vfork with clone3, BPF, seccomp filters, statmount, waitid, Landlock for
// ourselves, and descriptors that come with a message.
//
// Each call has a typed function and says from which Linux on it is there. What a call is
// for, and what is done where the kernel lacks it, is its caller's to know.
package sys
