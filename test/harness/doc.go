// Package harness runs the built engine against real containers, for black-box tests.
//
// A test takes a Box (New): a directory, a state root, and names that no other test uses; from it
// containers (Box.Container), whose bundle is written when they are first created or run. The
// engine is only ever called as a program; its answers are what it prints, its exit status, and
// what the helper program (test/inside) finds inside the container. When the test ends the Box
// looks for what was left behind, fails the test for it, and removes it.
//
// Main must be TestMain's only line. It moves the tests into a mount namespace of their own, so
// that a strict comparison of mount tables is possible on a busy machine, and makes the test
// process a subreaper, as conmon and containerd's shim are, so that it can wait for containers.
//
// The environment chooses: BERTH_BIN names a binary to test instead of building cmd/berth (another
// OCI runtime too, to see whether a test is sane), BERTH_INSIDE a built test/inside, BERTH_BUSYBOX
// a static busybox.
package harness
