// Package seccomptool is what the commands of "berth seccomp" do beyond the library: run a command
// under a filter whose notifications come here, compare profiles, say why a process was killed,
// read the kernel's log, and write profiles in other forms.
//
// It stands on package seccomp, on engine/supervisor for what is answered, and, to start a command,
// on engine/launch. Files, options and exit codes are the business of cmd/berth.
package seccomptool
