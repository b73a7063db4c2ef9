// Package rootfs reads and writes a container's root file system from outside.
//
// What is in a root file system was made by strangers and may change while we
// look. So a root is a handle: Root holds its descriptor, and every path is
// resolved by the kernel inside of it (openat2 with RESOLVE_IN_ROOT), absolute
// links and ".." included. Nothing here takes a path of a container as a string
// to open by itself.
//
// The container's own setup happens in its Program (package compile), by the
// same rule. What is here is what the runtime must know: the users of an image,
// the files that a tmpfs is filled with.
package rootfs
