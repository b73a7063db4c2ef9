// Package fake makes machines out of directories, with a systemd of their own, for the
// tests of the other packages of node/: capacity, cgroups of either version,
// kernel parameters, processes and units are what a test says they are.
//
// A fake cgroup is a directory with the files of a new cgroup. Nothing limits anything
// there; what limits do is tested on real kernels.
package fake
