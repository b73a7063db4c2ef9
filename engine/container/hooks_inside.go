package container

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/engine/compile"
	"github.com/berth-runtime/berth/engine/launch"
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/program"
	"github.com/berth-runtime/berth/internal/proc/procs"
)

// spawnInside starts a createContainer hook in the namespaces and the cgroup of the
// process that is being made, and otherwise as what it is: a program of the host.
func (m *maker) spawnInside(r *hookRun, stdio [3]uintptr) (*launch.Child, error) {
	joins, err := m.namespacesOf(m.child.Pid)
	if err != nil {
		return nil, err
	}
	defer joins.close()
	run := compile.HookRun{Path: r.hook.Path, Args: r.argv(), Env: r.env(), At: r.at, Dir: m.Rootfs, UserNS: joins.user}
	s := spawn{
		Spawn: launch.Spawn{Stdio: stdio, Cgroup: -1},
		Facts: compile.Facts{Fork: joins.fork, DropGroups: os.Geteuid() == 0}, Joins: joins.list, Root: -1, Gate: -1,
	}
	if m.group != nil {
		if err := m.group.enter(&s); err != nil {
			return nil, err
		}
	}
	child, err := s.start(func(f *compile.Facts) (*program.Program, error) { return compile.Hook(&run, f) })
	if err != nil {
		return nil, err
	}
	if err := child.Serve(0, refuse); err != nil && !errors.Is(err, launch.ErrExecuted) {
		child.Kill()
		return nil, err
	}
	child.Close()
	return child, nil
}

// spawnAsProcess starts a startContainer hook as the container's process is: with its
// credentials, limits, labels and filter, in its cgroup and its namespaces.
func (c *Container) spawnAsProcess(r *hookRun, p *plan.Plan, stdio [3]uintptr) (*launch.Child, error) {
	process := p.Process
	process.Path, process.PathAt = r.hook.Path, r.at+"/path"
	process.Args, process.Env = r.argv(), r.hook.Env
	process.Terminal, process.Console, process.PreserveFDs = false, nil, 0
	e := &execer{Container: c, plan: p, process: process, o: &ExecOptions{
		IO: IO{Stdio: stdio},
	}}
	return e.run()
}

func refuse(ask program.Request, _ int) error {
	return fmt.Errorf("unexpected request %d of a process being started", ask.Kind)
}

// pidInside is the number of a process in its own pid namespace, which a hook that
// runs there is told.
func pidInside(pid int) (int, error) {
	status, err := procs.Status(pid, "NSpid")
	if err != nil {
		return 0, fmt.Errorf("look at the container's process: %w", err)
	}
	fields := strings.Fields(status[0])
	if len(fields) == 0 {
		return pid, nil // CONFIG_PID_NS is off
	}
	return strconv.Atoi(fields[len(fields)-1])
}
