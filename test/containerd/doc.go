// Package containerd starts containerd daemons for tests: Debian's, which is of
// the 1.6 series, and a current 2.x that test/containerd2/build has built. Each
// daemon has a root, state, sockets, cgroups and shims of its own, in a directory
// that goes with the test; at its end the package looks for what containers have
// left behind, and fails the test for it.
//
// It knows of daemons, releases, images and leaks. What is done with a daemon is
// the business of the tests: those in shim/test/integration speak its services
// directly, those in test/containerd2 use its Go client and CRI.
package containerd
