// Package doctor looks at a machine for what containers need on it, and says for
// each gap what closes it: the exact command or drop-in file.
//
// Examine reads files below a root (so that tests can show it made-up machines)
// and, on the machine itself, tries system calls that change nothing. It starts
// no container and writes nothing. Each Finding says which users it concerns: what
// only ordinary users miss is no fault of a machine on which root runs
// containers, and the other way round.
//
// Only the doctor command uses it; nothing here is on the path of a container.
package doctor
