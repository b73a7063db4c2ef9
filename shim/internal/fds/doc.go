// Package fds carries open files from one program of a process to the next, over
// an execve(2), by the numbers of their descriptors.
//
// The program that goes notes numbers in a table, and then has them stay open.
// The one that comes makes files of them again: one for each number, however many
// parts of it ask, so that what was shared is shared again, and all of them known,
// should it have to give them back.
package fds
