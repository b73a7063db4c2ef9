//go:build go1.25

// Since Go 1.25 the runtime opens files of our cgroup at every start, and keeps them open, to
// follow its CPU limit. Commands are too short for that. (A file of its own, because Go 1.24 knows
// neither the settings nor how to pass over them.)
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0
package main
