// Package stack gives the main goroutine the stack that commands need, before they
// need it.
//
// A goroutine begins with 2 KiB of stack, and each time that does not do, all of it
// is copied to one twice as large: at 4, 8, 16 and 32 KiB. What that costs is not
// the copying but the pages: the runtime lays out a whole span of stacks of each
// size, and reads its tables of all functions that stand on the stack. Growing
// once, while nothing stands on it, saves a command of a few milliseconds 20 to 30
// page faults.
//
// The package imports nothing, so that the linker has it initialised before those
// of the standard library that have a stack to copy. It is imported for that only.
package stack
