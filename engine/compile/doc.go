// Package compile turns a Plan into Programs: the lists of system calls that are
// made inside the container.
//
// Container compiles the first process of a container, from its first instruction
// (the runtime has cloned it into new namespaces) to the user's execve.
// Exec compiles a process that is added to a running container. Hook compiles a
// hook that runs in the container's namespaces.
//
// Order is the whole difficulty here, so it stands in one place: the function
// Container reads as the list of phases. Each phase has a file. Everything that
// is opened below the container's root goes through open, which resolves inside
// that root and follows no magic link (openat2(2)), so that no content of a root
// file system, however it changes meanwhile, leads a call elsewhere.
//
// Nothing here touches the machine. What only the runtime can know or do (which
// descriptors it hands over, whether a source is a directory) comes in as Facts,
// and points where the Program must wait for the runtime are Asks.
package compile
