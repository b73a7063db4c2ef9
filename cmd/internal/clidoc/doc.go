// Package clidoc generates the documentation of commands from their definitions: man
// pages, shell completions, and the reference in docs/.
//
// It reads the definitions of package cli and writes text; it runs nothing, and
// touches no files. The command line is parsed by the same definitions, so an option
// that does not exist can't be documented.
package clidoc
