// Package refinterp runs Programs in Go, over a kernel that a test supplies.
//
// It reads the same encoded segment as the interpreters in Go assembly, from
// its own statement of the format, so that it finds a wrong encoding as well
// as a wrong instruction. Package program's tests hold the two against each
// other; everyone else uses it, mostly with [Fake], to run a whole Program
// without root and without a process.
//
// It is for tests. Nothing that ships imports it.
package refinterp
