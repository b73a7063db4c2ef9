package integration

import (
	"strings"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// A status of a box that is not its command's says so: 124 to 127, and nothing else.
func TestBoxExitStatus(t *testing.T) {
	b := harness.NewForAnyone(t)
	b.WriteFile("text", "no program", 0o644)
	b.WriteFile("garbage", "\x01no program", 0o755)
	b.WriteFile("orphan", "#!/no/such/interpreter\n", 0o755)
	b.WriteFile("cut.tar", "no archive", 0o644)
	b.WriteFile("dir/file", "", 0o644)
	// Both of the programs that connect a box.
	for _, name := range []string{"pasta", "slirp4netns"} {
		b.WriteFile("broken/"+name, "#!/bin/sh\necho out of order >&2\nexit 3\n", 0o755)
	}
	b.WriteFile("none/file", "", 0o644)
	for _, test := range []struct {
		code int
		args string
		want string
	}{
		{0, "-- /bin/true", ""},
		{1, "-- /bin/false", ""},
		{77, "-- /bin/sh|-c|exit 77", ""},
		{137, "-- /bin/sh|-c|kill -KILL $$", ""},
		{124, "--timeout 1ms -- /bin/sleep|1000", "--timeout"},

		{127, "-- no-such-program", "not found"},
		{127, "-- ./no-such-program", "no such file"},
		{127, "-- ./orphan", "no such file"},
		{127, "-- |", "no such file"},
		{126, "-- ./text", "permission denied"},
		{126, "-- ./garbage", "exec format error"},
		{126, "-- ./dir", "is a directory"},
		{126, "-- ./text/program", "not a directory"},

		{125, "--no-such-option -- /bin/true", "unknown option"},
		{125, "--memory", "needs a value"},
		{125, "--memory much -- /bin/true", "not a size"},
		{125, "--timeout soon -- /bin/true", "length of time"},
		{125, "--rootfs no-such-dir -- /bin/true", "--rootfs"},
		{125, "--rootfs text -- /bin/true", "not a directory"},
		{125, "--image no-such-image -- /bin/true", "--image no-such-image"},
		{125, "--image cut.tar --image-cache cache -- /bin/true", "--image cut.tar"},
		{125, "--entrypoint x -- /bin/true", "--entrypoint"},
		{125, "--user no-such-user -- /bin/true", "no-such-user"},
		{125, "--workdir /etc/passwd -- /bin/true", "--workdir"},
		{125, "--seccomp no-such-file -- /bin/true", "--seccomp"},
		{125, "--seccomp text -- /bin/true", "--seccomp text"},
		{125, "--learn no-such-dir/file -- /bin/true", "--learn"},
		{125, "--report text:no-such-dir/file -- /bin/true", "--report"},
		{125, "--report text:/dev/full -- /bin/true", "--report: write /dev/full: no space left"},
		{125, "--save no-such-dir/file -- /bin/true", "--save"},
		{125, "--on cut.tar -- /bin/true", "--on cut.tar"},
		{125, "--apply no-such-file", "--apply no-such-file"},
		{125, "--ro no-such-file -- /bin/true", "--ro"},
		{125, "--volume ./text:/etc -- /bin/true", "--volume: mount "},
		{125, "--ro dir:/etc/passwd -- /bin/true", "--ro: mount "},
		{125, "--tmp /etc/passwd -- /bin/true", "--tmp: mount "},
		{125, "--device /no/such/device -- /bin/true", "--device"},
		{125, "--ulimit nofile=99999999999 -- /bin/true", "--ulimit: set RLIMIT_NOFILE"},
		{125, "--ulimit nofile=1 -- /bin/true", "--ulimit: load the seccomp filter: too many open files (RLIMIT_NOFILE"},
		{125, "--cpuset-cpus most -- /bin/true", "--cpuset-cpus"},
	} {
		var args []string
		options, command, _ := strings.Cut(test.args, "-- ")
		if args = strings.Fields(options); command != "" {
			args = append(append(args, "--"), strings.Split(command, "|")...)
		}
		r := box(b, args...).Run().Exits(t, test.code)
		if !strings.Contains(r.Stderr, test.want) || test.want != "" && strings.Count(r.Stderr, "\n") != 1 || strings.Contains(r.Stderr, "config.json") {
			t.Errorf("%s: %q, want %q in one line", test.args, r.Stderr, test.want)
		}
	}
	for _, test := range []struct{ path, want string }{{"broken", "out of order"}, {"none", "neither is installed"}} {
		c := box(b, "--net", "nat", "--", "/bin/true")
		c.Env = []string{"PATH=" + b.Path(test.path)}
		c.Run().FailsWith(t, 125, "--net nat: ", test.want)
	}
	for _, options := range [][]string{{"--log", b.Path("no/such/dir/file")}, {"--root", b.Path("text")}, {"--cgroup-manager", "other"}, {"--trace", b.Path("no/such/dir/file")}, {"--no-such-option"}} {
		b.Command(append(options, "box", "--", "/bin/true")...).Run().Exits(t, 125)
	}
}

// Limits that can't be had, and too few to set the box up.
func TestBoxExitStatusOfLimits(t *testing.T) {
	harness.Controller(t, "memory")
	harness.Controller(t, "cpuset")
	b := harness.New(t)
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--memory", "4K"}, "--memory is too small"},
		{[]string{"--cpuset-cpus", "4095"}, "--cpuset-cpus"},
	} {
		box(b, append(test.args, "--", "/bin/true")...).Run().FailsWith(t, 125, test.want)
	}
}

// The other commands that pass on the exit status of a program have the same statuses.
func TestExitStatusOfAttendedCommands(t *testing.T) {
	b := harness.New(t)
	text, garbage := b.WriteFile("text", "no program", 0o644), b.WriteFile("garbage", "\x01no program", 0o755)
	group := demo(b)
	tool(b, "create", group+"/kept").OK(t)
	for _, command := range [][]string{{"cgroup", "run", "--path", group + "/run"}, {"cgroup", "exec", group + "/kept"}, {"seccomp", "learn", "-o", b.Path("profile")}} {
		for _, test := range []struct {
			code int
			args []string
		}{
			{7, []string{"sh", "-c", "exit 7"}}, {127, []string{"no-such-program"}}, {127, []string{""}}, {126, []string{text}}, {126, []string{garbage}},
		} {
			b.Berth(append(append(append([]string(nil), command...), "--"), test.args...)...).Exits(t, test.code)
		}
	}
	for _, args := range [][]string{
		{"--no-such-option", "cgroup", "run", "true"}, {"cgroup", "--no-such-option", "exec", group, "true"},
		{"cgroup", "run", "--no-such-option", "true"}, {"cgroup", "run", "--memory", "much", "true"}, {"cgroup", "run", "--path", "/", "true"}, {"cgroup", "run"},
		{"cgroup", "exec", group + "/not-made", "true"}, {"cgroup", "exec", group},
		{"seccomp", "learn"}, {"seccomp", "learn", "-o", b.Path("no/such/dir/file"), "true"}, {"seccomp", "learn", "--merge", b.Path("missing"), "true"},
	} {
		b.Berth(args...).Exits(t, 125)
	}
}
