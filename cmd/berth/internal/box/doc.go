// Package box turns the options of "berth box" into the configuration of a
// container, and its resource usage into a report.
//
// A box is a container of a single command: its root file system is the host's
// own, or a given directory, of which all that is written is lost with it. Spec makes
// the same configuration that a bundle would hold, so the engine knows no boxes;
// what it offers to them is offered to all (the annotation run.berth.root.writes,
// CreateOptions.Init).
//
// The package reads passwd and group files and looks at paths it was given. It
// makes nothing and runs nothing: that is cmd/berth's part.
package box
