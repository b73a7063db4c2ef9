// Package events publishes a shim's events to containerd, in the order in which they happened: to
// its ttrpc socket or, where a start was not told of that, by its command "publish".
//
// There is one queue for a shim. Its head is sent until containerd has taken
// it, however long that is away; only then comes the next. So nothing
// overtakes, and nothing is lost but what containerd itself refuses. An event
// is sent twice only where the connection broke between containerd's taking it
// and its answer; both have the same timestamp.
package events
