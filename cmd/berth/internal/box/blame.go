package box

import "strings"

// blamed are the entries of a config.json that the options of a box fill, those before that others
// lie in.
var blamed = [...][2]string{
	{"/linux/resources/memory/limit", "--memory"}, {"/linux/resources/memory/swap", "--memory"}, {"/linux/resources/memory", "--memory"},
	{"/linux/resources/cpu/quota", "--cpus"}, {"/linux/resources/cpu/period", "--cpus"}, {"/linux/resources/cpu/cpus", "--cpuset-cpus"},
	{"/linux/resources/cpu", "--cpus"}, {"/linux/resources/pids/limit", "--pids"}, {"/linux/resources/pids", "--pids"},
	{"/linux/resources/blockIO", "--io"}, {"/linux/seccomp", "--seccomp"}, {"/hostname", "--hostname"},
	{"/process/rlimits", "--ulimit"}, {"/process/capabilities", "--cap-add"}, {"/process/env", "--env"},
	{"/process/cwd", "--workdir"}, {"/process/user", "--user"}, {"/root/path", "--rootfs"},
	{"/process/args/0: ", ""}, {"/process/args/0", "COMMAND"},
}

// Blame puts an error of the engine into the words of the command line: it names
// entries of a config.json that the user never wrote.
func (o *Options) Blame(message string) string {
	for _, entry := range blamed {
		message = strings.ReplaceAll(message, "config.json: "+entry[0], entry[1])
		message = strings.ReplaceAll(message, entry[0], entry[1])
	}
	if o.Image != nil {
		message = strings.ReplaceAll(message, "--rootfs", "--image")
	}
	return strings.TrimPrefix(message, "config.json: ")
}
