// Package cgrouptool is what the commands of "berth cgroup" do: make, remove,
// list, read and change cgroups, put processes into them, and show them with
// what they use, as a tree and live.
//
// It stands on package cgroup, and adds what a tool for people needs: targets
// written as controllers:path, a mark on each cgroup that it makes, by which a
// later call knows it as its own, and drawing for terminals of any width. It
// writes into a cgroup only where the mark, or package cgroup, says that it may
// (see cgroup.Owner), unless Force is set. It touches cgroup file systems
// and reads /proc; options and exit codes are the business of cmd/berth.
package cgrouptool
