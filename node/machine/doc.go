// Package machine is the node as it is: it finds the capacity, the cgroups, the
// units, the kernel's parameters and the daemons, and gives them as plan.Facts.
//
// It reads /proc, /sys, the cgroup file systems and systemd's bus, and changes
// nothing; changing is the business of node/enforce. A Machine can stand on a
// directory instead of / (OpenIn), which is how tests make machines.
package machine
