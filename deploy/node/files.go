// Package node holds the files that berth-node is shipped with, for tests and for
// whoever packages it: the unit, an example configuration, the alerts and the
// dashboard. It does nothing.
package node

import _ "embed"

// The files by what they are.
var (
	//go:embed berth-node.service
	Unit string
	//go:embed node.yaml
	Config string
	//go:embed alerts.yaml
	Alerts string
	//go:embed grafana-dashboard.json
	Dashboard string
)
