// Package unit says which systemd unit a container becomes: the name and the
// slice that follow from cgroupsPath, where that unit's cgroup is, and the extra
// properties that a config's annotations ask for.
//
// It is pure, knows nothing about D-Bus, and costs a program's start nothing, so
// that a plan can be made without a bus. Package cgroup/systemd starts the
// units. The text of annotations is parsed by cgroup/systemd/gvariant.
package unit
