// Package staged moves bytes between descriptors and the keeper's memory such that each is there
// once, whenever the shim is killed.
//
// Within the kernel splice(2) does that. Where bytes have to be in memory between, because they are
// to go into a message, say, they go through a pipe that nothing else is put into or taken from:
// what is left in it tells the next shim how far a read or a write of it had come.
//
// It knows neither files nor streams: packages stdio and streaming lead them through it.
package staged
