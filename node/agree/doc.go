// Package agree holds what berth-node plans against what the other programs of the node are
// configured to do: the kubelet, containerd, Docker, and berth itself by its settings. They have to
// agree on what makes cgroups (the driver), where the workloads are, and what is reserved; where
// they do not, each difference is one line with what to change.
//
// It also writes the configuration of a kubelet, and containerd's drop-in, that match a plan.
//
// It reads files of the machine's /etc and /var, and command lines in /proc; it asks no daemon and
// changes nothing.
package agree
