// Package plan decides what to do to a node: from the configuration (what the
// operator wants) and the Facts (what the machine is) it derives the reservations,
// the hierarchy, and the list of Steps, each with the value that holds now.
//
// It is pure, so that every rule is tested by tables on any machine. The Facts are
// gathered by node/machine, the Steps done and undone by node/enforce, and drawn
// by node/show.
package plan
