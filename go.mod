module github.com/berth-runtime/berth

go 1.24.0

toolchain go1.26.8

require (
	github.com/opencontainers/runtime-spec v1.3.0
	github.com/pelletier/go-toml/v2 v2.4.3
	go.yaml.in/yaml/v3 v3.0.5
	golang.org/x/sys v0.41.0
)
