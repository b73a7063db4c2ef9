// Package namespace opens and compares the namespaces that processes are in, by the links of
// /proc/PID/ns (namespaces(7)), and makes user namespaces to map the ids of mounts by.
//
// Kinds are called as those links are: user, mnt, pid, net, ipc, uts, cgroup and time. What a
// namespace is for is its caller's to know.
package namespace
