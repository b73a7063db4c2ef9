// Package cluster runs Berth on a Kubernetes cluster of real parts: two guests (test/guests) with
// systemd and cgroup v2, each with containerd 2, a kubelet and kube-proxy, and beside them, on this
// machine, etcd, the API server, the controller manager and the scheduler. make test-cluster builds
// what that takes (run, build) and starts the tests; without it they are skipped.
//
// machine.go is the network, control.go what runs on this machine, node.go a guest, certificates.go
// who trusts whom, kubectl.go how the tests ask. All of it is in one network namespace that has no
// way out of it, and is gone with the tests' process.
//
// Berth comes onto the nodes by build/deploy alone: nothing here installs it.
package cluster
