// Package entry is where a program begins, before Go's runtime does, if it was linked with
// -E=berth_entry (build/scripts/build does so for berth and the shim). It arranges two things that
// can't be had later, and that are a fifth of what a short command takes; see
// docs/decisions/entry.md.
//
//   - A longer timer slack, for the thread by which Go watches the others: that sleeps
//     20 microseconds at a time, all the while a command runs.
//   - GOMAXPROCS=1 in the environment: a command has one thing to do at a time, and
//     nothing else keeps Go from starting threads for more.
//
// Both are ours alone. The first init undoes them for the main thread and its
// environment; code that starts a lasting process calls Restore or ForkExec, or passes it Slack.
//
// Linked without the flag, and on machines without an entry here, all that does nothing.
package entry
