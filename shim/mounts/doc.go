// Package mounts puts a container's root file system together from the mounts
// that containerd's snapshotter gives, and takes it apart again.
//
// It understands the fstab-like options of such mounts: flags, propagation,
// loop, uidmap and gidmap, and hands the rest to the file system. What has been
// mounted is undone when a later mount fails. Targets are resolved inside the
// root. It touches mounts below the directory it is given, and a private temporary
// one while an overlay's layers are mapped.
package mounts
