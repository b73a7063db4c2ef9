// Package seccomptool is what the commands of "berth seccomp" do beyond the library: run a command
// under a filter whose notifications come here, make a profile of the calls that it makes, name the
// calls that a profile refuses, and compare profiles.
//
// It stands on package seccomp and, to start a command, on engine/launch. What it decides by is the
// call as the kernel tells of it; memory of the command is only read for what is recorded, never
// for what is allowed. Files, options and exit codes are the business of cmd/berth.
package seccomptool
