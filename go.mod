module github.com/berth-runtime/berth

go 1.26.0

require (
	github.com/opencontainers/runtime-spec v1.3.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
