// Package image makes a root file system of an image: an OCI layout (a directory, or a tar archive
// of one), what "docker save" and "podman save" write, or a tar archive of a root file system.
//
// An image is unpacked once, into a cache, and found there by the digests of its layers. What an
// archive says is a stranger's word: documents and layers are held against their digests, package
// layer keeps every name inside of the directory, and a root that was not unpacked to its end never
// has the name by which it is found. Programs of an image may be setuid, so the cache is its
// owner's only.
package image
