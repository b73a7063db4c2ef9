// Package config is the configuration of berth-node: one YAML file, of which
// every key is a flag too, and the flags win.
//
// The keys are one table (Keys), from which the file is read, the flags are made
// and the help and docs are written. Every value knows where it came from, so that
// an error, a plan's step and a report of drift can name the line to change.
// It reads the one file and touches nothing else; what the values mean on a
// machine is the business of node/allocatable and node/plan.
package config
