// Command fault runs a program and makes one of its system calls go wrong, or kills it after one.
//
// It is for package reliability, which has each call of the engine fail and each of its steps be
// the last, and for package neighbour, which acts between any two. It follows the program and what
// that starts by ptrace(2), numbers the processes in the order of their birth, and leaves everybody
// alone who has executed a program that is not the engine's: hooks and the container's own
// processes.
//
// A call is named PROCESS:NAME:N, the Nth call of that name by that process. What the Go runtime
// does on its own behalf (memory, threads, signals) is not counted, as its number is never twice
// the same.
//
//	fault -record FILE -- PROGRAM…                  write down all calls
//	fault -at 0:mkdirat:2 -fail EPERM -- PROGRAM…   the call is not made, and fails
//	fault -at 1:mount:1 -kill 0 -- PROGRAM…         when the call has been made, process 0 is killed
//	fault -step 17 -follow -- PROGRAM…              who has made the 17th call that changes something is killed after it
//	fault -step 17 -kept [-before] -follow -- …     the 17th call of all that a shim with a keeper makes is the last, or is not made
//	fault -every mount_setattr -fail ENOSYS -- …    all calls of the name; -text WORDS for those of a path with the words only
//	fault -tell SOCKET -- PROGRAM…                  each call waits until who listens there lets it be made
//
// A daemon's calls come in another order each time. So they are counted through as steps there, by
// whichever of its processes; for a step of an init, who has started that is killed, as the init
// itself is the engine's business. With -follow its standard input and output are closed once the
// program runs, for who waits for the end of that.
//
// Its exit status is the program's, 128 and the signal where one ended it. The -hit file has the
// call when that has come.
package main
