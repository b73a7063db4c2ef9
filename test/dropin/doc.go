// Package dropin puts the real clients of an OCI runtime on top of the engine: Debian's dockerd and
// podman, as they are installed, a later dockerd that fetch-docker fetches, and the CRI-O that
// test/crio/build builds, configured as docs/docker.md, docs/podman.md and docs/cri-o.md say.
//
// A test gets the directories in which clients are configured and keep their things
// (/etc, /run, /dev/shm, /usr/local, /var/lib) as copies of its own, in the tests' mount
// namespace: what it installs, configures and makes there no other process sees, and it
// goes with the test. What is left of containers at the end fails it.
//
// It knows how clients are started and what they may leave behind. What is asked of
// them is the business of the tests here, and of those in test/docs, which run the
// pages.
package dropin
