// Package bundle reads from an OCI bundle what the shim itself acts on, and
// keeps the shim's notes in it: which other bundles are of its group, and how
// the container's init ended.
//
// The notes are for the delete that runs after a shim has died, which finds
// nothing else. Only files in the bundles that it is given are touched.
package bundle
