package main

const name = "io.containerd.berth.v2"

// Set when a release is built, by -ldflags "-X main.version=…".
var (
	version  = "0.1.0-dev"
	revision = "unknown"
)
