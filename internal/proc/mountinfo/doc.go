// Package mountinfo reads tables of mounts, /proc/PID/mountinfo.
//
// It parses text and opens nothing but the tables themselves. Who wants a few kinds
// of file system only says so: the table grows with every container on the host,
// and lines of other kinds are passed over after a look at their type.
package mountinfo
