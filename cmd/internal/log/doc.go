// Package log writes the lines that clients of OCI runtimes parse: one line a
// message, as text (time="…" level=… msg="…") or JSON. Text on a terminal is for
// a person instead: the message as it is, without the quotes that a parser needs.
//
// It is used by the programs only; packages return errors and never log them.
package log
