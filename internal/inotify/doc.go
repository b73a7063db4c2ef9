// Package inotify parses what the kernel writes to an inotify descriptor.
//
// The descriptor and its watches are the caller's.
package inotify
