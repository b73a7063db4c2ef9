// Package neighbour acts as a hostile neighbour of containers between any two calls of the engine.
//
// The other tests of package attacks retrace ways that have worked before. This one knows none: it
// puts together who could act, what they could do and when, and looks at what has come of it.
//
//   - A principal (agents_test.go, scene_test.go) is a party with rights of its own: the
//     container's payload, a sibling container that shares its root and a volume, another user of
//     the host. Each is a real process that has just these rights, and runs "inside agent", which
//     does what the test says; what it is allowed, the kernel decides. The author of a config and
//     the image act before the first step: they are the shapes (shapes_test.go).
//   - An act (acts_test.go) is a line for an agent: exchange a name for another, put a link, FIFO
//     or device there, take a lease, trace, signal, steal descriptors and write to them, leave a
//     namespace, use up the pids.
//   - A step (steps_test.go) is the moment before a call of the engine's or of an init's.
//     test/fault holds all of them meanwhile.
//   - A trial (trial_test.go) is a container with one command of its life (commands_test.go) made
//     step by step. Acts that can be undone are undone at the next step, so that a trial has
//     another act at each, and trials follow until each act was tried at each step that it can bear
//     on: one on a name at the calls that look it up or tell of names, and one on a process at all
//     of them. Acts that stay have a trial each, at some of these steps.
//   - Invariants (invariants_test.go, rights_test.go, canary_test.go) are no expectations of what
//     an act brings about: each process that executes anything in the container, looked at from the
//     host before its first instruction, has at most the ids, groups, capabilities, filter,
//     cgroups, namespaces, descriptors and mounts of its config; no principal can trace anything
//     that has more; a canary (a folder, a container with its cgroups and state, the host's mounts
//     and parameters) is as it was; a command that fails says so in a line, takes no longer than it
//     may, and leaves nothing. To be refused is fine.
//   - The runner (runner_test.go) shuffles all series of trials by a seed and makes as many as
//     there is time for; when something is broken it looks for the one act that does it, and the
//     report (report_test.go) has the words to try that again.
//
// The environment chooses: BERTH_BUDGET is how long it goes on (a minute; "make attacks" gives it
// time for all), BERTH_SEED the order (the day's number, so that each day has another share),
// BERTH_ONLY a regular expression on SHAPE|COMMAND|PRINCIPAL ACT, and BERTH_AGAIN one trial,
// SHAPE|COMMAND or SHAPE|COMMAND|PRINCIPAL ACT|STEP, as the report prints it.
//
// A new act is a line in acts, and, if it is of a new kind, a word in test/inside/neighbour.go. A
// new principal is a constant in acts_test.go and an agent in admit; a new shape or command is a
// line in its table. What a process may have is computed from the config in rights_test.go, and not
// by the engine's own packages, whose mistakes it would share.
//
// What is traced can't be traced or stopped by another, and so the agents ask the kernel whether
// they could (proc_pid_mem(5) takes the same right as ptrace(2)), and send no SIGSTOP. The threads
// of a Go program are no steps: what the runtime does on its own is not counted.
package neighbour
