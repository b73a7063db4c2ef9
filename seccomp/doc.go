// Package seccomp compiles the seccomp profiles of the OCI runtime spec (linux.seccomp of
// config.json) to filters for seccomp(2), in Go alone.
//
// [Compile] checks a profile strictly and makes a [Filter] of it; [Filter.Load] puts it in force
// for the calling thread, [Filter.Bytes] is for those who load it elsewhere. [Default] is a profile
// for ordinary containers, [Explain] says in words what a profile does.
//
// [Install] does it all in one call, for this process, and [Filter.Start] for a program that it
// starts. [AllowAllBut] and [AllowOnly] are profiles in one line. Of a filter with
// SCMP_ACT_NOTIFY, [Notify] receives the calls, from whose arguments and memory they are answered.
//
// The rest of the package only computes: it opens no file and starts nothing, and has no work to do
// when a program starts. Numbers of system calls are in internal/sysnum,
// generated; what BPF is and what the kernel takes of it in internal/cbpf.
package seccomp
