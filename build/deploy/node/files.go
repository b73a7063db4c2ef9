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
