package neighbour

import specs "github.com/opencontainers/runtime-spec/specs-go"

// A command is one of the engine's, and what is there before it.
type command struct {
	verb  string
	flags []string
	words []string // after the id
	needs state
	// notify is set where systemd is to be told of the container, through a socket that this can
	// reach.
	notify bool
	// not are shapes that it is not for, and only, where not nil, those that it is for.
	not, only []string
	// odd is set where it may be refused with nobody acting.
	odd bool
	// process is what an exec adds: nil for none.
	process func(s *specs.Spec) *specs.Process
}

func (c command) String() string {
	name := c.verb
	for _, word := range append(c.flags, c.words...) {
		name += "_" + word
	}
	return name
}

// state is a container's.
type state string

const (
	absent  state = ""
	created state = "created"
	running state = "running"
	stopped state = "stopped"
	written state = "written down by criu, and removed"
)

var commands = []command{
	{verb: "run", flags: []string{"--detach"}},
	{verb: "create"},
	{verb: "start", needs: created},
	{verb: "exec", words: []string{"/bin/busybox", "true"}, needs: running, process: func(s *specs.Spec) *specs.Process { return s.Process }},
	{verb: "exec", flags: []string{"--user", "1000:1001"}, words: []string{"/bin/busybox", "true"}, needs: running, not: []string{rootless}, process: func(s *specs.Spec) *specs.Process {
		p := *s.Process
		p.User = specs.User{UID: 1000, GID: 1001}
		return &p
	}},
	// Descriptor 3 is not open.
	{verb: "exec", flags: []string{"--preserve-fds", "1"}, words: []string{"/bin/busybox", "true"}, needs: running, odd: true,
		process: func(s *specs.Spec) *specs.Process { return s.Process }},
	{verb: "run", flags: []string{"--detach", "--preserve-fds", "1"}, odd: true},
	{verb: "start", needs: running, notify: true, odd: true, not: []string{"mapped", rootless}},
	{verb: "state", needs: running},
	{verb: "ps", needs: running, not: []string{rootless}}, // without a cgroup it knows no processes
	{verb: "events", flags: []string{"--stats"}, needs: running},
	{verb: "update", flags: []string{"--pids-limit", "50", "--memory", "300000000"}, needs: running, not: []string{rootless}},
	{verb: "pause", needs: running, not: []string{rootless}},
	{verb: "kill", words: []string{"WINCH"}, needs: running},
	{verb: "kill", words: []string{"KILL"}, needs: running},
	{verb: "delete", flags: []string{"--force"}, needs: running},
	{verb: "delete", needs: stopped},
	{verb: "gc", needs: stopped},
	{verb: "checkpoint", flags: []string{"--leave-running", "--image-path", images}, needs: running, only: criuShapes},
	{verb: "checkpoint", flags: []string{"--image-path", images}, needs: running, only: criuShapes},
	{verb: "restore", flags: []string{"--detach", "--image-path", images}, needs: written, only: criuShapes},
}
