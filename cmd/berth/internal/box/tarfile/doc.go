// Package tarfile reads and writes tar archives: ustar, with the extensions of pax(1), and of GNU
// tar for long names and large numbers, which is what images and their layers are made of.
//
// It touches nothing but the stream that it is given, and takes what comes from it for a stranger's
// word: names are as they stand there (package layer keeps to its root). archive/tar is not linked,
// as it brings os/user, which with cgo would ask the C library.
package tarfile
