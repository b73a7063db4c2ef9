// Package integration tests the built engine from outside, against real containers, as root.
//
// There is nothing but tests in it, a file for each subject. They call the binary as Docker, Podman
// and the others do (package harness), and judge a container by what a program inside of it finds
// (test/inside). They know nothing of the engine's packages, and run against any OCI runtime with
// runc's command line:
//
//	BERTH_BIN=/usr/sbin/runc go test ./test/integration/
//
// What the machine lacks is skipped with its reason, and summed up at the end of the run.
package integration
