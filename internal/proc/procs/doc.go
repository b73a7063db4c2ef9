// Package procs reads what /proc tells of a process (proc(5)), for a table of a container's
// processes on hosts that have no ps(1), and for all of the engine knows where the name in a file
// stat ends. It looks at processes of others, which may end at any moment and are called what they
// like: one that is gone is ErrGone, and what its files hold is parsed as foreign text. It decides
// nothing about how anything is shown.
package procs
