// Package record is what berth-node remembers: every change to the machine with the
// value from before, written to disk before the change is made.
//
// Crash-only: at whatever instant a kill -9 came, the record has all that was
// changed, and perhaps one change that was not made yet; undoing that is harmless,
// since it restores the value that is still there. What does not outlive a boot is
// dropped from the record of another boot. One process at a time has the record.
// The package touches its own directory only.
package record
