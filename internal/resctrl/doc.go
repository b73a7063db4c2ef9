// Package resctrl puts a container into a class of service of Intel's Resource
// Director Technology, by the kernel's resctrl file system (linux.intelRdt).
//
// The rules of the runtime specification are kept to the letter: which directory is
// made, which is only joined, when schemata are written and when compared, what
// is removed. Nothing is touched unless the config has an intelRdt object.
package resctrl
