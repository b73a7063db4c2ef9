// Package node holds the files that berth-node is shipped with, for tests and for
// packagers: the unit, an example configuration, the alerts and the
// dashboard. It does nothing.
package node
