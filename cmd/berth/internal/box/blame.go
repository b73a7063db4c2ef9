package box

import (
	"strconv"
	"strings"
)

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
		message = strings.ReplaceAll(message, strings.ReplaceAll(entry[0][1:], "/", "."), entry[1])
		if strings.HasPrefix(entry[1], "--") {
			message = withoutNumber(message, entry[1])
		}
	}
	if o.Image != nil {
		message = strings.ReplaceAll(message, "--rootfs", "--image")
	}
	return strings.TrimPrefix(o.blameMount(message), "config.json: ")
}

// withoutNumber leaves out which entry of a list it is that an option has filled.
func withoutNumber(message, option string) string {
	before, after, ok := strings.Cut(message, option+"/")
	if digits := strings.TrimLeft(after, "0123456789"); ok && len(digits) < len(after) {
		return before + option + digits
	}
	return message
}

// blameMount names the option by which a mount was asked for.
func (o *Options) blameMount(message string) string {
	before, after, ok := strings.Cut(message, mountsAt)
	rest := strings.TrimLeft(after, "0123456789")
	i, err := strconv.Atoi(after[:len(after)-len(rest)])
	if !ok || err != nil || i >= len(o.mounted) {
		return message
	}
	option := o.mountOption(o.mounted[i].Destination)
	if option == "" {
		return message
	}
	return strings.TrimSuffix(before, "config.json: ") + option + rest
}

const mountsAt = "/mounts/"
