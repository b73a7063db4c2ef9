//go:build go1.25

// Since Go 1.25 the runtime keeps cgroup files open, and a timer running, to follow CPU limits that
// concern a shim little. (A file of its own, because Go 1.24 knows neither the settings nor how to
// pass over them.)
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0
package main
