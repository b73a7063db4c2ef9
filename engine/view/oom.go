package view

import (
	"strconv"
	"strings"
	"time"

	"github.com/berth-runtime/berth/engine/container"
	"github.com/berth-runtime/berth/internal/kmsg"
)

// oomLogged counts the processes of the container that were OOM-killed, where its cgroup is gone
// and its counters with it: systemd removes that of a scope with the last process. The kernel logs
// a line for each kill (mm/oom_kill.c, dump_oom_victim, since Linux 5.0), and of many at once some.
func oomLogged(c *container.Container) (kills uint64, ownLimit bool) {
	earliest, latest := c.LoggedSince()
	// What of it can be read tells; nothing of it is no news.
	_ = kmsg.Each(func(at time.Duration, text string) {
		victim, limit := oomLine(text, c.Cgroup.Path)
		// One that was killed before may be of another container with this cgroup. Pids come in
		// turn, and begin anew after some millions.
		if victim > 0 && at >= earliest && (at >= latest || victim >= c.Pid) {
			kills++
			ownLimit = ownLimit || limit
		}
	})
	return kills, ownLimit
}

// oomLine reads a line such as
//
//	oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a,task_memcg=/a/b,task=sh,pid=7,uid=0
//
// and gives the pid of the process of the cgroup that was killed, 0 for none, and says whether it
// was by a limit of the cgroup or of one below.
func oomLine(text, path string) (pid int, limit bool) {
	rest, ok := strings.CutPrefix(text, "oom-kill:constraint=")
	if !ok {
		return 0, false
	}
	// The path of a cgroup may hold commas, and so may the name of the process.
	before, task, ok := strings.Cut(rest, ",task_memcg=")
	if !ok || !below(task, path) {
		return 0, false
	}
	last := strings.LastIndex(task, ",pid=")
	if last < 0 {
		return 0, false
	}
	number, _, _ := strings.Cut(task[last+len(",pid="):], ",")
	if pid, _ = strconv.Atoi(number); pid <= 0 {
		return 0, false
	}
	_, at, ok := strings.Cut(before, ",oom_memcg=")
	return pid, ok && below(at+",task=", path)
}

// below reports whether a text begins with the path, or one below it, as the value of a field that
// ",task=" follows.
func below(text, path string) bool {
	rest, ok := strings.CutPrefix(text, path)
	return ok && (strings.HasPrefix(rest, ",task=") || strings.HasPrefix(rest, "/"))
}
