// Command containerd-shim-berth-v2 is the containerd Runtime v2 shim of Berth:
// the runtime name io.containerd.berth.v2, or io.containerd.runc.v2 with its
// path for the runtime's. See docs/containerd.md.
package main
