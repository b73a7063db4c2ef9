// Package plan says what would be done to a node: from the configuration (what an
// operator wants) and the Facts (what a machine is) it makes the reservations,
// the hierarchy, and the list of Steps, each with the value that holds now.
//
// It is pure, so that every rule is tested by tables on any machine. The Facts are
// gathered by node/machine, the Steps done and undone by node/enforce, and drawn
// by node/show.
package plan
