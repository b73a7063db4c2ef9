// Command conformance prints docs/spec-conformance.md: what the runtime
// specification demands, each with the tests that cover it.
//
// The demands are the table in table.txt, in our own words. The tests are looked
// for in the tree: one that is listed and is not there is an error, so that no
// page can claim a test that was removed or renamed. It reads the tree
// that it is run in, and changes nothing.
package main
