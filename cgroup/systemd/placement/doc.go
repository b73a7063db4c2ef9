// Package placement gives a program that manages processes a cgroup tree of its
// own on a host that systemd runs, in the two ways that systemd's rules of
// delegation have besides a unit for each container:
//
//   - Island: the program's own unit has Delegate=yes, and all is below it. D-Bus
//     is not needed.
//   - Territory: the program stays in a unit that is not delegated, and one scope
//     that is holds everything that it starts.
//
// In both, processes are in the leaves only: supervisor/ for the program itself,
// payload-NAME/ for each thing that it runs, whose limits are set by package
// cgroup. The third way, a unit for each container, is what the engine does with
// --systemd-cgroup.
package placement
