// Package device turns the device rules of the OCI runtime spec into what each
// kind of host enforces: lines for cgroup v1's devices.allow and devices.deny, a
// BPF program for cgroup v2, and systemd's DeviceAllow.
//
// A list of rules is folded into a Policy first. Its meaning is the order of the
// list: for each kind of access to a device, the last rule that speaks of it
// decides, and without one it is denied. The three outputs are made from the
// Policy and are pure; the BPF program is tested by an interpreter against
// Policy.Allows. Attach is the only function that talks to the kernel, through
// internal/sys. Nothing here reads /proc or /dev, opens a cgroup, or makes nodes.
package device
