// Package changes tells what a command in a box has changed: it compares the memory that took the
// box's writes (container.Scratch) with what lies below on the host.
//
// The changes are shown as text, as a tree or as JSON, without anything of what the files hold;
// kept as a layer (package layer); put into the next box before it starts; or compared with the
// machine that they are to be brought to. The package reads the host, and writes nothing but the
// archive and the scratch of a box.
package changes
