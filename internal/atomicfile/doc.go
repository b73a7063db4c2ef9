// Package atomicfile writes a file as a whole: a reader finds the old file or the new one and
// never part of it, also when the writer was killed. The new content goes to a temporary file
// beside the old, which is then renamed.
//
// Two programs that write one file at a time must keep each other apart: a temporary file that is
// there is taken for that of a writer that was killed.
//
// Write leaves it to the kernel when the file reaches the disk. That is right for what tells of
// processes, such as a container's state or a pid file: none of them lives longer than the
// machine, so there is nothing to read after a power cut. WriteSynced is for what does: settings
// that are kept over a boot, and the record of what they were.
package atomicfile
