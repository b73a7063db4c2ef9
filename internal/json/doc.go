// Package json reads and writes JSON without reflection.
//
// Every berth command reads config.json or state.json before it does anything
// else, so reading is on the path of each container start. [Decoder] pulls
// values out of a document by hand-written or generated straight-line code;
// [Writer] appends them. Both know nothing of Go types, import neither reflect
// nor encoding/json, and do no work at program start.
//
// The reader is stricter than encoding/json: RFC 8259 to the letter, keys by
// exact case, no invalid UTF-8, no lone surrogates, nesting and value counts
// bounded. What doesn't fit the caller's expectation is noted with its JSON
// pointer and reading goes on, so that all such faults are reported together;
// broken syntax ends the reading with a line and a column.
//
// The package touches nothing outside its arguments.
package json
