// Package clidoc makes what tells of commands from their definitions: man pages,
// completions for shells, and the reference in docs/.
//
// It reads the definitions of package cli and writes text; it runs nothing, and
// touches no files. As all of it comes from what reads the command line, none of it
// can tell of an option that there is not.
package clidoc
