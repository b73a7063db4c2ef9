// Package usage measures what each part of a node uses: the containers of the
// plan, and the workloads as the sum over their running pods and containers.
//
// It reads cgroup files through package cgroup, and knows a container by its
// place below the workloads and by the processes that run in it. It changes
// nothing.
package usage
