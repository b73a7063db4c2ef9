// Package streaming is the streaming service of containerd 2: standard streams
// that go over the shim's socket instead of through FIFOs, which containerd's CRI
// asks for by io_type = "streaming" in a runtime with sandboxer = "shim".
//
// A client opens a stream and says its id; a task that is created later names the
// id in place of a path. Each side may send only as much as the other has told it
// to: so a reader that does not read stops the process that writes, as a full pipe
// does, and no one else.
//
// The package moves bytes between the streams and the pipes that package stdio
// gives it. When the shim is upgraded, it halts at a point that it can write down;
// with a keeper, where it is stands in the keeper's memory at any instant.
package streaming
