// Package cgroup makes, limits, watches and removes control groups, on
// version 1, version 2 and hosts that mix them, with one model: a host has
// hierarchies, each controller lives in exactly one of them, and a group is
// one directory in each.
//
//	host, err := cgroup.Detect()
//	group, err := host.Create("/demo")
//	defer group.Purge()
//	report, err := group.Set(&resources) // the OCI runtime spec's linux.resources
//	err = group.Start(exec.Command("make")) // or Join(pid), for what runs already
//	stats, err := group.Stats()
//	err = group.Freeze()
//
// It touches cgroup file systems and reads /proc; it moves, freezes and
// signals processes of the groups it is given, and nothing else. It writes
// only into groups that it made or that were delegated to it (see Owner),
// unless told to Force. What a limit means on which kernel is the business of
// cgroup/ledger, device rules of cgroup/device, units of cgroup/systemd.
package cgroup
