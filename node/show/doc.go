// Package show draws plans and nodes for people: as tables and trees for
// terminals, and as one self-contained page for browsers.
//
// It is given what is to be shown and writes text; it reads nothing of the machine.
package show
