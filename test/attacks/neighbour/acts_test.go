package neighbour

import (
	"fmt"
	"slices"
	"strings"
)

// An act is what a principal does at a step, in words of "inside agent".
type act struct {
	by   string // the principal
	do   string
	undo string // "" where it leaves nothing to undo, or nothing that can be
	// once is set where the rest of the command has to meet what it has left: such an act has a run
	// for each step.
	once bool
	// only are the commands that it is for; nil for all.
	only []string
	// shapes are those that it is for; nil for all.
	shapes []string
}

func (a act) String() string { return a.by + " " + a.do }

// bearsOn reports whether what happens after a step can differ by the act.
func (a act) bearsOn(st step) bool {
	verb, words, _ := strings.Cut(a.do, "=")
	name, _, _ := strings.Cut(words, ",")
	switch verb {
	case "exchange":
		return st.looksUp(name) || st.tells()
	case "link", "fifo", "node", "chmod", "file", "lease":
		return st.looksUp(name)
	case "name":
		return strings.HasPrefix(st.text, "/proc/") // who reads of the process
	case "pids":
		return strings.Contains(st.at, ":clone") || strings.Contains(st.at, ":vfork") || strings.Contains(st.text, "cgroup")
	}
	return true
}

func (a act) isFor(sh shape, c command) bool {
	switch {
	case slices.Contains(c.not, sh.name), c.only != nil && !slices.Contains(c.only, sh.name), a.only != nil && !slices.Contains(a.only, c.verb), a.shapes != nil && !slices.Contains(a.shapes, sh.name):
		return false
	case a.by == payload && (sh.name == "pod" || sh.name == hostPids) && strings.HasPrefix(a.do, "signal="):
		return false // it may, and would end the pod, or what is the user's on the host
	case a.by == payload:
		return c.needs == running && (!strings.HasPrefix(a.do, "become=") || a.do == wholly || slices.Contains(joining, c.verb))
	case a.by == member:
		return sh.name == "pod"
	case a.by == sibling:
		if c.byCriu() && strings.HasPrefix(a.do, "fifo=") {
			return false // criu opens what is there by itself, and waits: see the remaining risks
		}
		return !c.odd && (sh.name == "usual" && !(a.once && c.verb == "create") || slices.Contains(roots[sh.name], c.verb))
	}
	return true
}

// roots are the shapes that differ from the usual one in what is made of the root, with the
// commands that make it: run has all that create and start do. What happens to names is the same
// for the others.
var roots = map[string][]string{"hooked": {"run", "start"}, "mapped": {"run", "exec"}, "bare": {"run"}, rootless: {"run", "exec"}}

// joining are the commands that look at which namespaces a process is in, or are let into them.
var joining = []string{"exec", "events", "checkpoint"}

// wholly leaves the namespaces that matter at once.
const wholly = "become=-U,-r,-m"

// The principals. What each of them is, scene.admit says.
const (
	payload = "payload" // the container's own process
	sibling = "sibling" // another container, which shares its root and a volume
	member  = "member"  // another container of the same pod, which may trace
	user    = "user"    // another user of the host, with the number of the container's
)

// names are components of the root and of the volume, as the sibling sees them: of mount targets,
// of what is masked or read-only, of what init looks for there, and of a mount's source. Each has a
// double under NAME.other.
var names = strings.Fields(`/shared/proc /shared/sys /shared/dev /shared/etc /shared/etc/passwd /shared/etc/secret /shared/etc/fixed
	/shared/home /shared/home/user /shared/srv /shared/srv/a /shared/var /shared/var/cache /shared/inside /shared/opt
	/shared/opt/nodes /volume/data`)

// making are the commands that resolve names of the root.
var making = []string{"run", "create", "start", "exec", "checkpoint", "restore"}

// acts are all of them, outside is the canary's directory.
func acts(outside string) []act {
	var all []act
	add := func(a ...act) { all = append(all, a...) }
	for _, name := range names {
		exchange := fmt.Sprintf("exchange=%s,%[1]s.other", name)
		inside := strings.TrimPrefix(strings.TrimPrefix(name, "/shared"), "/volume")
		restore := "restore=" + name
		add(
			act{by: sibling, do: exchange, undo: exchange, only: making},
			act{by: sibling, do: exchange, undo: exchange, once: true, only: making},
			act{by: sibling, do: "link=" + name + "," + outside + inside, undo: restore, only: making},
			act{by: sibling, do: "link=" + name + ",/proc/1/root" + outside + inside, undo: restore, once: true, only: making},
			act{by: sibling, do: "link=" + name + ",/proc/self/fd/3", undo: restore, only: making},
			act{by: sibling, do: "fifo=" + name, undo: restore, only: making},
			act{by: sibling, do: "node=" + name + ",7,0", undo: restore, only: making},
			act{by: sibling, do: "chmod=" + name + ",0", undo: "chmod=" + name + ",755", only: making},
		)
	}
	add(
		act{by: sibling, do: `file=/shared/etc/passwd,x:x:0`, undo: "restore=/shared/etc/passwd", only: making},
		act{by: sibling, do: "lease=/shared/etc/passwd", undo: "lease=", only: making},
		act{by: sibling, do: "lease=/shared/inside", undo: "lease=", only: making},
	)
	for _, who := range []string{payload, member, user} {
		add(act{by: who, do: "reach="}, act{by: who, do: "forge=bytes,17"})
	}
	for _, message := range messages() {
		add(act{by: payload, do: "forge=" + message, shapes: []string{"tracer", "mapped"}, only: []string{"exec"}})
	}
	for _, name := range []string{") Z 1 (", "a\nb", "0 (0) R 0 0", "\x1b]0;x\a\xff"} {
		add(act{by: payload, do: "name=" + strings.ReplaceAll(name, "\n", " "), undo: "name=inside"})
	}
	for _, flags := range []string{"-U", "-U,-r"} {
		add(act{by: payload, do: "become=" + flags, once: true, shapes: []string{"usual", "mounter", "nobody", "mapped"}})
	}
	add(act{by: payload, do: wholly, once: true, shapes: []string{"usual", "mounter", "nobody", "mapped", hostPids, rootless}})
	for _, flags := range []string{"-m", "-u", "-i", "-n"} { // which the others may not leave
		add(act{by: payload, do: "become=" + flags, once: true, shapes: []string{"mounter", rootless}})
	}
	add(
		act{by: payload, do: "signal=9"},
		act{by: payload, do: "signal=15"},
		act{by: payload, do: "pids=30", undo: "pids=0"},
		act{by: payload, do: "pids=70", undo: "pids=0", once: true, shapes: []string{"usual", "mapped", hostPids}}, // one more than it may have
		act{by: payload, do: "exchange=/home,/home.other", undo: "exchange=/home,/home.other"},
		act{by: payload, do: "link=/home/user,/proc/1/cwd", undo: "restore=/home/user"},
		act{by: payload, do: "fifo=/etc/passwd", undo: "restore=/etc/passwd"},
		act{by: payload, do: "lease=/etc/passwd", undo: "lease="},
		act{by: payload, do: "mount-over=/proc", once: true, shapes: []string{"mounter"}},
		act{by: payload, do: "mount-over=/etc", once: true, shapes: []string{"mounter"}},
		act{by: payload, do: "leave=", once: true, shapes: []string{"usual", "nobody", hostPids, rootless}},
		act{by: payload, do: "freeze=", once: true, shapes: []string{"delegated"}},
		act{by: payload, do: "nest=50", once: true, shapes: []string{"delegated"}},
		act{by: payload, do: "link=/run/host/notify/socket," + outside + "/etc/secret", undo: "restore=/run/host/notify/socket", only: []string{"start"}},
		act{by: user, do: "signal=0"},
		act{by: member, do: "signal=0"},
	)
	return all
}

// messages are words for forge: each kind of Ask that there is and some that there are not, with
// values around what is counted by them; and messages of any size.
func messages() (words []string) {
	for kind := range 26 {
		words = append(words, fmt.Sprint(kind, ",", []string{"0", "1", "0xffffffff", "0xffffffffffffffff"}[kind%4]))
		words = append(words, fmt.Sprint(kind, ",", []string{"0x7fffffffffffffff", "4096", "0x8000000000000000", "2"}[kind%4]))
	}
	for _, size := range []int{1, 15, 16, 17, 4096} {
		words = append(words, fmt.Sprint("bytes,", size))
	}
	for i, word := range words {
		words[i] = strings.ReplaceAll(word, " ", "")
	}
	return words
}
