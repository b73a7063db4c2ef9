// Package log writes the lines that clients of OCI runtimes parse: one line a
// message, as text (time="…" level=… msg="…") or JSON. On a terminal,
// text is the plain message, without the quotes that a parser needs.
//
// It is used by the programs only; packages return errors and never log them.
package log
