// Package containerd2 has no code, but tests of the shim below containerd's CRI
// plugin and below containerd's own Go client, and is the module that says which
// containerd 2 the tests are run with.
//
// It is a module of its own because it needs containerd and Kubernetes' client as
// dependencies, which the programs of Berth are not to have. Run build once, then
// go test in this directory.
package containerd2
