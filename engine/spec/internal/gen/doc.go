// Command gen writes the decoder and the encoder of specs.Spec: one function
// per structure, a switch over its keys. Run it by "go generate" in engine/spec/ when
// the runtime-spec module changes; a test fails while the files are behind.
package main
