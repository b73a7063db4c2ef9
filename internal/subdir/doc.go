// Package subdir lists the directories in a directory with as few system calls as there can be: for
// trees of thousands of cgroups, where reading them is most of the work. It touches nothing else.
package subdir
