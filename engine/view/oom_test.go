package view

import "testing"

func TestOOMLine(t *testing.T) {
	const head = "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0"
	for _, c := range []struct {
		text  string
		pid   int
		limit bool
	}{
		{head + ",oom_memcg=/m/a.scope,task_memcg=/m/a.scope,task=sh,pid=7,uid=0", 7, true},
		{head + ",oom_memcg=/m/a.scope/x,task_memcg=/m/a.scope/x/y,task=sh,pid=7,uid=0", 7, true},
		{head + ",oom_memcg=/m,task_memcg=/m/a.scope,task=sh,pid=7,uid=0", 7, false},
		{"oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/m/a.scope,task=sh,pid=7,uid=0", 7, false},
		{head + ",oom_memcg=/m,task_memcg=/m/b.scope,task=sh,pid=7,uid=0", 0, false},
		{head + ",oom_memcg=/m/a.scope.more,task_memcg=/m/a.scope.more,task=sh,pid=7,uid=0", 0, false},
		{head + ",oom_memcg=/b,task_memcg=/b,task=,task_memcg=/m/a,pid=7,uid=0", 0, false},
		{head + ",oom_memcg=/m/a.scope,task_memcg=/m/a.scope,task=x,pid=1,y,pid=7,uid=0", 7, true},
		{head + ",oom_memcg=/m/a.scope,task_memcg=/m/a.scope,task=sh", 0, false},
		{"Memory cgroup out of memory: Killed process 7 (sh) ,task_memcg=/m/a.scope,task=", 0, false},
	} {
		if pid, limit := oomLine(c.text, "/m/a.scope"); pid != c.pid || limit != c.limit {
			t.Errorf("%s: %d %t", c.text, pid, limit)
		}
	}
}

// The line has the names of cgroups and processes in it, which a container chooses.
func FuzzOOMLine(f *testing.F) {
	f.Add("oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/m/a,task_memcg=/m/a/x,task=sh,pid=7,uid=0", "/m/a")
	f.Fuzz(func(t *testing.T, text, path string) {
		if pid, limit := oomLine(text, path); pid < 0 || limit && pid == 0 {
			t.Errorf("%q of %q: %d %t", path, text, pid, limit)
		}
	})
}
