// Package attacks tries to get out of containers, through the built engine and as root, in the ways
// that have worked against container runtimes before.
//
// docs/threat-model.md names for each published weakness the rule that makes it impossible here,
// and the test of this package that tries it. Each attack is one that succeeds against the faulty
// design: where that is cheap to show, the test first carries it out against code that has the
// fault, and fails if it does not work there. What belongs to the host lies in an outside directory
// with known content, and is compared afterwards. Only files of the test itself are ever at stake.
package attacks
