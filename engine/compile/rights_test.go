package compile_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/engine/compile"
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/program"
	"github.com/berth-runtime/berth/engine/program/refinterp"
	"github.com/berth-runtime/berth/internal/caps"
	"github.com/berth-runtime/berth/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// rights are what a process may do at one moment of its Program, and who can see it then.
type rights struct {
	permitted, bounding, inheritable, ambient caps.Set
	uid, gid                                  uint32
	groups                                    []uint32
	noNewPrivs, landlocked, filtered          bool
	tasks                                     int    // cgroups that were joined
	joined                                    uint64 // CLONE_NEW… of the namespaces entered
	visible                                   bool   // to the container
}

// An audit is the kernel of a Program, and looks at each call at what the process is.
type audit struct {
	refinterp.Fake
	rights
	plan    *plan.Plan // what the process will be
	allowed []int      // descriptors that may be open where it is seen
	late    bool       // seen from its answer to AskReady on, and not from its fork
	admin   bool       // CAP_SYS_ADMIN may be held for the loading of the filter
	asked   bool
	cgroups int // cgroups that it is to have joined
	calls   int // made where it was seen
	found   []string
}

func audited(t *testing.T, code *program.Program, p *plan.Plan, f *compile.Facts, late, admin bool, allowed ...int) *audit {
	t.Helper()
	all := caps.Set(1<<41 - 1)
	a := &audit{rights: rights{permitted: all, bounding: all, groups: []uint32{0, 4}}, plan: p, late: late, admin: admin, allowed: allowed, cgroups: len(f.Tasks)}
	for fd := range 40 {
		a.FDs = append(a.FDs, fd)
	}
	a.Answer = a.answer
	if f.Group > 0 {
		a.cgroups++
	}
	result, err := refinterp.Run(code.Segment(), &a.Fake)
	if err != nil || result.Failure != nil || !result.Gone {
		t.Fatalf("the Program ended with %v, %+v after\n%s", err, result.Failure, strings.Join(a.Texts(), "\n"))
	}
	if a.calls == 0 {
		t.Fatal("it was never seen")
	}
	return a
}

// answer looks, then does what the call does to the rights.
func (a *audit) answer(c refinterp.Call, mem *refinterp.Memory) (int64, bool) {
	if a.visible {
		a.look(c)
	}
	words := func(at uint64, n int) (list []uint32) {
		for i := range n {
			b, _ := mem.Bytes(at+4*uint64(i), 4)
			list = append(list, uint32(b[0])|uint32(b[1])<<8|uint32(b[2])<<16|uint32(b[3])<<24)
		}
		return list
	}
	switch c.Nr {
	case unix.SYS_CLONE3:
		a.tasks++
		if a.joined != 0 {
			a.found = append(a.found, "it enters its cgroup from within the container's namespaces")
		}
		return 0, true
	case unix.SYS_CLONE:
		if a.visible = a.visible || a.joined&unix.CLONE_NEWPID != 0 && !a.late; a.visible {
			a.look(c)
		}
		return 0, true
	case unix.SYS_SETNS:
		a.joined |= c.Args[1]
	case unix.SYS_CAPSET:
		w := words(c.Args[1], 6)
		a.permitted, a.inheritable = caps.Set(w[1])|caps.Set(w[4])<<32, caps.Set(w[2])|caps.Set(w[5])<<32
	case unix.SYS_PRCTL:
		switch {
		case c.Args[0] == unix.PR_CAPBSET_DROP:
			a.bounding &^= 1 << c.Args[1]
		case c.Args[0] == unix.PR_SET_NO_NEW_PRIVS:
			a.noNewPrivs = true
		case c.Args[0] == unix.PR_CAP_AMBIENT && c.Args[1] == unix.PR_CAP_AMBIENT_RAISE:
			a.ambient |= 1 << c.Args[2]
		}
	case unix.SYS_SETRESUID:
		a.uid = uint32(c.Args[0])
	case unix.SYS_SETRESGID:
		a.gid = uint32(c.Args[0])
	case unix.SYS_SETGROUPS:
		a.groups = words(c.Args[1], int(c.Args[0]))
	case unix.SYS_LANDLOCK_RESTRICT_SELF:
		a.landlocked = true
	case unix.SYS_SECCOMP:
		if !a.noNewPrivs && a.permitted&(1<<caps.SysAdmin) == 0 {
			return -int64(unix.EACCES), true
		}
		a.filtered = true
		const listener = 39
		switch {
		case a.visible: // where the filter would be in the way of coming there
			a.allowed = append(a.allowed, listener)
		case a.plan.Process.Seccomp.Filter.Notify && !slices.Contains(a.FDs, listener):
			a.FDs = append(a.FDs, listener)
		}
		return listener, true
	case unix.SYS_OPENAT:
		if name, _ := mem.CString(c.Args[1]); strings.HasSuffix(name, "/tasks") {
			a.tasks++
		}
	case unix.SYS_SENDTO:
		record, _ := mem.Bytes(c.Args[1], 8)
		a.asked = len(record) == 8 && string(record[:4]) == "BASK" && record[4] == byte(program.AskReady)
	case unix.SYS_READ:
		a.visible = a.visible || a.late && a.asked
	}
	return 0, false
}

// look compares what the process is with what it will be.
func (a *audit) look(c refinterp.Call) {
	a.calls++
	p := &a.plan.Process
	want := p.Permitted
	if p.Seccomp != nil && !p.NoNewPrivileges && a.admin {
		want |= 1 << caps.SysAdmin
	}
	say := func(bad bool, format string, args ...any) {
		if bad {
			a.found = append(a.found, c.Text+": "+fmt.Sprintf(format, args...))
		}
	}
	say(a.permitted&^want != 0, "capabilities %x, will be %x", a.permitted, p.Permitted)
	say(a.bounding&^p.Bounding != 0, "bounding set %x, will be %x", a.bounding, p.Bounding)
	say(a.inheritable&^p.Inheritable != 0, "inheritable set %x, will be %x", a.inheritable, p.Inheritable)
	say(a.ambient&^p.Ambient != 0, "ambient set %x, will be %x", a.ambient, p.Ambient)
	say(a.uid != p.UID || a.gid != p.GID, "user %d:%d, will be %d:%d", a.uid, a.gid, p.UID, p.GID)
	say(!slices.Equal(a.groups, p.Groups), "groups %v, will be %v", a.groups, p.Groups)
	say(p.NoNewPrivileges && !a.noNewPrivs, "no no_new_privs yet")
	say(p.Landlock != nil && !a.landlocked, "not under Landlock yet")
	say(p.Seccomp != nil && !a.filtered && !standsInTheWay(a.plan), "no seccomp filter yet")
	say(!a.late && a.tasks != a.cgroups, "%d of %d cgroups joined", a.tasks, a.cgroups)
	for _, fd := range a.FDs {
		say(fd > 2 && !slices.Contains(a.allowed, fd), "descriptor %d is open", fd)
	}
}

// added are the facts of a process that is added to a container.
func added() *compile.Facts {
	f := &compile.Facts{Report: 3, Gate: -1, LastCap: 40, OpenFiles: 1024, Fork: true, DropGroups: true, Group: 8, Tasks: []string{"/cpu/tasks", "/pids/tasks"}}
	for i, flag := range []uintptr{unix.CLONE_NEWNS, unix.CLONE_NEWPID, unix.CLONE_NEWNET, unix.CLONE_NEWUSER} {
		f.Joins = append(f.Joins, compile.Join{FD: 4 + i, Flag: flag, Text: "enter"})
	}
	return f
}

// inAPod are the facts of a container that joins a pid namespace.
func inAPod(p *plan.Plan) *compile.Facts {
	f := factsOf(p)
	f.Fork, f.Outside, f.Tasks = true, true, []string{"/cpu/tasks", "/pids/tasks"}
	f.NewNamespaces &^= unix.CLONE_NEWPID
	f.Joins = []compile.Join{{FD: 5, Flag: unix.CLONE_NEWPID, Text: "enter"}}
	return f
}

// standsInTheWay reports whether the filter refuses what a process that has loaded it would still
// have to do.
func standsInTheWay(p *plan.Plan) bool {
	if p.Process.Seccomp == nil {
		return false
	}
	for _, name := range filtered {
		if action, _, ok := p.Process.Seccomp.Filter.Decide(name); !ok || action != specs.ActAllow {
			return true
		}
	}
	return false
}

// filtered are calls that filters of the test refuse.
var filtered = []string{"clone", "setsid", "capset", "accept4", "sendto"}

// TestNeverMoreThanItWillBe holds the rule that no process which a container can see has, at any
// instant, what the process of the config will not have: for the configs of the golden files, and
// for some thousand that are made of them by chance, for exec (as which startContainer hooks are
// run), for a container that waits for its start, and for one that is made in the pid namespace of
// others.
func TestNeverMoreThanItWillBe(t *testing.T) {
	configs, _ := filepath.Glob("testdata/*.json")
	random := rand.New(rand.NewPCG(15, 9))
	seen, refused := 0, 0
	for _, name := range configs {
		config, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for round := range 500 {
			p := planOf(t, config)
			if round > 0 {
				shake(t, p, random)
			}
			for _, kind := range []string{"exec", "container", "own tree", "pod"} {
				var code *program.Program
				f := added()
				allowed := []int{3} // the socket
				late := kind == "container" || kind == "own tree"
				// Where nobody could reach for it.
				admin := p.Namespace(specs.UserNamespace) != nil || p.Process.Bounding&(1<<19) == 0
				switch kind {
				case "own tree":
					var usable bool
					if f, usable = ownTreeOf(p); !usable {
						continue
					}
					code, err = compile.Container(p, f)
					allowed = append(allowed, 4)
				case "container":
					f = factsOf(p)
					code, err = compile.Container(p, f)
					allowed = append(allowed, 4) // the gate
				case "pod":
					f = inAPod(p)
					code, err = compile.Container(p, f)
					allowed, admin = append(allowed, 4), standsInTheWay(p)
				default:
					process := p.Process
					code, err = compile.Exec(p, &process, f)
				}
				if err != nil {
					if !strings.Contains(err.Error(), "CAP_SYS_PTRACE") {
						t.Fatalf("%s, %s, round %d: %v", name, kind, round, err)
					}
					refused++
					continue
				}
				if late && compile.WaitsWithMore(p) {
					refused++ // exec refuses to add a process meanwhile
					continue
				}
				a := audited(t, code, p, f, late, admin, allowed...)
				if len(a.found) > 0 {
					t.Fatalf("%s, round %d, %s:\n%s", name, round, kind, strings.Join(a.found, "\n"))
				}
				seen += a.calls
			}
		}
	}
	if refused == 0 {
		t.Error("no config had a filter that stands in the way")
	}
	t.Logf("%d calls were made where the container could see it; %d Programs were refused", seen, refused)
}

// shake changes what a process is to be.
func shake(t *testing.T, p *plan.Plan, random *rand.Rand) {
	t.Helper()
	q := &p.Process
	some := func() caps.Set { return caps.Set(random.Uint64()&random.Uint64()) & (1<<41 - 1) }
	q.UID, q.GID, q.Groups = random.Uint32N(3)*1000, random.Uint32N(3)*1000, []uint32{1, 2, 3}[:random.IntN(4)]
	q.Bounding = some()
	q.Permitted = q.Bounding & some()
	q.Effective, q.Inheritable = q.Permitted&some(), q.Permitted&some()
	q.Ambient = q.Inheritable & some()
	q.NoNewPrivileges = random.IntN(2) == 0
	q.Terminal = random.IntN(3) == 0
	if random.IntN(2) == 0 {
		q.Landlock = nil
	}
	q.Rlimits = nil
	if random.IntN(2) == 0 {
		q.Rlimits = []plan.Rlimit{{Name: "RLIMIT_NPROC", Resource: unix.RLIMIT_NPROC, Soft: 1, Hard: 1}}
	}
	q.Scheduler = nil
	if random.IntN(3) == 0 {
		q.Scheduler = &plan.Scheduler{Flags: unix.SCHED_FLAG_RESET_ON_FORK}
	}
	if random.IntN(4) == 0 {
		q.Seccomp = nil
		return
	}
	profile := &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, ListenerPath: "/agent"}
	names := append([]string{"swapon"}, filtered...)
	profile.Syscalls = []specs.LinuxSyscall{{Names: names[:1], Action: specs.ActErrno}}
	if random.IntN(3) == 0 {
		profile.Syscalls[0].Names = names[random.IntN(len(names)):]
	}
	if random.IntN(4) == 0 {
		profile.Syscalls = append(profile.Syscalls, specs.LinuxSyscall{Names: []string{"mount"}, Action: specs.ActNotify})
	}
	filter, err := seccomp.Compile(profile)
	if err != nil {
		t.Fatal(err)
	}
	q.Seccomp = &plan.Seccomp{Filter: filter, ListenerPath: "/agent"}
}

// TestTheAuditFinds has the audit look at a Program that forks into a pid namespace of others first
// of all, as that of a container which joins one does: it is seen with all that it has.
func TestTheAuditFinds(t *testing.T) {
	p := planOf(t, []byte(`{"ociVersion": "1.3.0", "root": {"path": "/rootfs"}, "process": {"args": ["x"], "cwd": "/"},
		"linux": {"namespaces": [{"type": "mount"}, {"type": "pid", "path": "/proc/1/ns/pid"}]}}`))
	f := added()
	f.Gate = -1
	code, err := compile.Container(p, f)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(audited(t, code, p, f, false, false, 3).found, "\n")
	for _, want := range []string{"capabilities 1ffffffffff, will be 0", "bounding set", "descriptor 4 is open"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not find %q", want)
		}
	}
}
