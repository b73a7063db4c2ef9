// Package reliability makes the built engine's surroundings fail, from outside and as root, and
// looks at what is left.
//
// Each step of each command is its last one in some run (crash_test.go); each system call of the
// launch path fails in some run, with each of several errnos (failing_test.go), and is missing in
// some (fallback_test.go); disks are full, limits hit, clocks jump (surroundings_test.go);
// containers come and go by the thousand (soak_test.go). What a command must leave behind is then
// nothing, or a container that can be handled, and its error is one line that says what failed. The
// steps and calls are not listed here: each test first has test/fault write them down, so a new
// call is tested from the day it is made.
//
// docs/reliability.md is made of what these tests report, by build/scripts/reliability.
package reliability
