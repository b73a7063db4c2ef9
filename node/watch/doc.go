// Package watch is the daemon: it applies the plan, and keeps it applied.
//
// It learns of changes from the kernel (who wrote to which file, by fanotify, or only that it
// changed, by inotify; without systemd the end of daemons, by pidfds), from systemd's signals, and
// at last from a slow look at everything. What is not as planned any more is reported, with what is
// known of who did it, and mended. It tells systemd how it is, writes events to the journal, and
// serves /metrics and /healthz.
//
// What is true is decided by node/machine and node/plan, and mended by
// node/enforce; this package has the loop, and touches the machine by those only.
package watch
