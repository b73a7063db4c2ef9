// Package node tests berth-node on whole machines that have systemd: it changes
// system.slice, kernel parameters and units, so that it runs only where nothing is
// lost by that: in the guests of test/guests (make test-vm).
package node
