// Package reaper waits for every process that the shim is the parent of: those
// it starts, those that an engine made and left to it, and, as it is a
// subreaper, the orphans of containers.
//
// A process that matters is known by a pidfd and its end is read through that,
// so a status can never be taken for that of a later process with the same
// pid. Orphans are reaped as they come, but not while an engine is at work (see
// Hold): what ends in that time stays a zombie, and so keeps its pid, until the
// engine has said which pid is the container's.
//
// Nothing else in the shim may wait for children. The package knows nothing about
// containers.
package reaper
