// Package docs runs the commands of the pages in docs/, so that what they tell
// people to type works.
//
// Each ```sh block is a script for bash -eu, in the order of the page. The lines of a
// ```text block right behind it must come in its output, in their order; "…" stands for
// anything. A block begins in the directory where the one before it ended, as in the terminal
// of a user who copies one after the other; environment variables do not pass on.
package docs
