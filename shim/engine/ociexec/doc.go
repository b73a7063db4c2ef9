// Package ociexec is an engine that drives the binary of another OCI runtime,
// such as runc or crun: the shim that calls an engine by executing it.
//
// Every call is one execution, with the flags that these runtimes share. The
// container's init and execs become children of the shim, which is their
// subreaper, when the runtime leaves. What went wrong is read from the
// runtime's own log, in JSON, so that its sentence reaches the user.
//
// The package writes into the container's bundle (logs, pid files, process
// files) and the temporary directory (console sockets), and executes nothing but
// the runtime.
package ociexec
