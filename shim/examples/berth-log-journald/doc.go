// Command berth-log-journald is a logging program for containers that writes
// what they say to systemd's journal. It is an example of the protocol, small
// enough to be read, and fit for use:
//
//	ctr run --log-uri binary:///usr/local/bin/berth-log-journald …
//
// The query of the URI is its arguments, pairs of a name and a value that become
// fields of every entry: binary:///…/berth-log-journald?UNIT=web. The container's
// output has the priority "info", and its errors "err".
package main
