// Package plan turns a checked Spec and the facts of a Host into a Plan: a
// description, as plain data, of everything that will be done to the machine to
// make one container.
//
// New is a pure function. It opens no file and makes no system call, so that
// every rule of translation can be tested by tables, as any user, on any
// machine, and so that `berth explain` can print what would happen without
// doing it. Each entry of a Plan carries the JSON pointer of the config entry
// that it comes from; an entry without one is there by default.
//
// What happens inside the container is compiled from the Plan by package
// compile; what happens around it is done by package launch.
package plan
