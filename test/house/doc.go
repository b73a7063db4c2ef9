// Package house tests how the repository is built and what may depend on what: the modules, what
// importing a library brings along, the arrows between rooms, and builds by other flags and
// toolchains than those of build/scripts/build.
package house
