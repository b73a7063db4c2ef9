// Package nat connects the network namespace of a box with the host's network by a program that
// needs no rights: pasta or slirp4netns. The box reaches what the host reaches, but not what
// listens on the host's loopback addresses, and is reached by the ports that are published.
package nat
