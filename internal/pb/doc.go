// Package pb reads and writes the encoding of protocol buffers, a field at a time: what
// shim's messages for containerd and criu's requests share. It knows no message.
package pb
