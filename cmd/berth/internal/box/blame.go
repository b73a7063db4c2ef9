package box

import "strings"

// Blame puts an error of the engine into the words of the command line: it names
// entries of a config.json that the user never wrote.
func (o *Options) Blame(message string) string {
	for _, entry := range [...][2]string{
		{"/linux/resources/memory/limit", "--memory"}, {"/linux/resources/memory/swap", "--memory"}, {"/linux/resources/memory", "--memory"},
		{"/linux/resources/cpu/quota", "--cpus"}, {"/linux/resources/cpu/period", "--cpus"}, {"/linux/resources/cpu/cpus", "--cpuset-cpus"}, {"/linux/resources/cpu", "--cpus"}, {"/hostname", "--hostname"}, {"/process/rlimits", "--ulimit"},
		{"/linux/resources/pids/limit", "--pids"}, {"/linux/resources/pids", "--pids"},
		{"/linux/resources/blockIO", "--io"}, {"/linux/seccomp", "--seccomp"},
		{"/process/cwd", "--workdir"}, {"/process/user", "--user"}, {"/root/path", "--rootfs"},
		{"/process/args/0: ", ""}, {"/process/args/0", "COMMAND"},
	} {
		message = strings.ReplaceAll(message, "config.json: "+entry[0], entry[1])
		message = strings.ReplaceAll(message, entry[0], entry[1])
	}
	if o.Image != nil {
		message = strings.ReplaceAll(message, "--rootfs", "--image")
	}
	return strings.TrimPrefix(message, "config.json: ")
}
