// Package testgroup makes cgroups for the tests of packages that know of no hierarchy
// themselves, as cgroup/device and cgroup/ledger. No program uses it.
package testgroup
