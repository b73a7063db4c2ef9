package machine

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/berth-runtime/berth/internal/proc/procs"
	"github.com/berth-runtime/berth/node/config"
	"github.com/berth-runtime/berth/node/plan"
	"golang.org/x/sys/unix"
)

// process is a look at one of /proc.
type process struct {
	m   *Machine
	pid int
}

func (p process) file(name string) string {
	return p.m.Root + "/proc/" + strconv.Itoa(p.pid) + "/" + name
}

// read gives a small file, by three system calls: one of each process is read.
func (p process) read(name string) string {
	fd, err := unix.Open(p.file(name), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	buf := make([]byte, 4096)
	for {
		// The kernel makes these in one piece, and none is longer but for a cgroup's absurd path.
		n, err := unix.Read(fd, buf)
		if err != unix.EINTR {
			return strings.TrimSpace(string(buf[:max(n, 0)]))
		}
	}
}

// Pids lists the processes.
func (m *Machine) Pids() []int {
	dir, err := os.Open(m.Root + "/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

func (p process) stat() (*procs.Stat, error) { return procs.ParseStat([]byte(p.read("stat"))) }

// isKernel reports whether it is a thread of the kernel (PF_KTHREAD).
func (p process) isKernel() bool {
	s, err := p.stat()
	return err == nil && s.Flags&0x00200000 != 0
}

// cgroups gives its places, by hierarchy as /proc names it: "" is version 2.
func (p process) cgroups() map[string]string {
	places := map[string]string{}
	for line := range strings.Lines(p.read("cgroup") + "\n") {
		if _, rest, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			if home, path, ok := strings.Cut(rest, ":"); ok {
				places[home] = path
			}
		}
	}
	return places
}

// cgroup is the path that says most: systemd's, else version 2's, else that of
// the memory controller.
func (p process) cgroup() string {
	places := p.cgroups()
	if path, ok := places["name=systemd"]; ok && path != "/" {
		return path
	}
	if path, ok := places[""]; ok && path != "/" {
		return path
	}
	for home, path := range places {
		if slices.Contains(strings.Split(home, ","), "memory") {
			return path
		}
	}
	return "/"
}

// Loose lists the processes that are in no cgroup but the root of each
// hierarchy: not the kernel's, and not the first.
func (m *Machine) Loose() []int {
	root, err := m.Cgroups.Open("/")
	if err != nil {
		return nil
	}
	defer root.Close()
	pids, err := root.Procs()
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(pids, func(pid int) bool {
		p := process{m, pid}
		places := p.cgroups()
		for _, path := range places {
			if path != "/" {
				return true
			}
		}
		return pid == 1 || len(places) == 0 || p.isKernel()
	})
}

// namespace tells the pid namespace of a process.
func (p process) namespace() string {
	link, _ := os.Readlink(p.file("ns/pid"))
	return link
}

// ours reports whether a process is one of the host's: in our own pid namespace, and with
// the root directory of its first process. Containers have daemons too, and one that
// shares the host's pids has a root of its own all the same.
func (p process) ours() bool {
	own, _ := os.Readlink(p.m.Root + "/proc/self/ns/pid")
	if p.namespace() != own {
		return false
	}
	root, err := os.Stat(p.file("root"))
	if err != nil {
		return false
	}
	first, err := os.Stat(process{p.m, 1}.file("root"))
	return err == nil && os.SameFile(root, first)
}

// executable is the path of the program, also of one that was replaced since.
func (p process) executable() string {
	link, _ := os.Readlink(p.file("exe"))
	return strings.TrimSuffix(link, " (deleted)")
}

// runs verifies that the process is the daemon that a key means. A process can
// call itself anything, so it is the executable that counts: of a path, the very
// file; of a name, a file of this name that only root can have put there.
func (p process) runs(key, comm string) bool {
	base := filepath.Base(key)
	if comm != base[:min(len(base), 15)] { // which is as much as the kernel keeps
		return false
	}
	if filepath.Base(p.executable()) != base || !p.ours() {
		return false
	}
	running, err := os.Stat(p.file("exe"))
	if err != nil {
		return false
	}
	if filepath.IsAbs(key) {
		if p.executable() != key {
			return false
		}
		// Where the file was replaced by an upgrade, the path has to do.
		there, err := os.Stat(p.m.Root + key)
		link, _ := os.Readlink(p.file("exe"))
		return err == nil && os.SameFile(running, there) || strings.HasSuffix(link, " (deleted)")
	}
	st, ok := running.Sys().(*syscall.Stat_t)
	return ok && st.Uid == 0 && running.Mode().Perm()&0o022 == 0
}

// isUnit reports whether a key of the OOM scores names a unit.
func isUnit(key string) bool {
	return strings.HasSuffix(key, ".service") || strings.HasSuffix(key, ".scope")
}

// processes finds the daemons, the kubelet and the loose processes.
func (m *Machine) processes(ctx context.Context, c *config.Config, f *plan.Facts) error {
	const kubelet = "kubelet"
	for _, pid := range m.Pids() {
		p := process{m, pid}
		name := p.read("comm")
		if name == kubelet && f.Kubelet == nil && p.runs(kubelet, name) {
			d := m.daemon(ctx, kubelet, pid)
			f.Kubelet = &d
		}
		for key := range c.Scores {
			if !isUnit(key) && p.runs(key, name) {
				f.Daemons = append(f.Daemons, m.daemon(ctx, key, pid))
			}
		}
	}
	if m.Units != nil {
		for key := range c.Scores {
			if !isUnit(key) {
				continue
			}
			properties, err := m.Units.Properties(ctx, key, "MainPID")
			if err != nil {
				return err
			}
			if pid, ok := properties["MainPID"].(uint32); ok && pid != 0 {
				f.Daemons = append(f.Daemons, m.daemon(ctx, key, int(pid)))
			}
		}
	}
	slices.SortFunc(f.Daemons, func(a, b plan.Daemon) int {
		if d := strings.Compare(a.Key, b.Key); d != 0 {
			return d
		}
		return a.PID - b.PID
	})
	_, err := os.Stat(m.Root + "/var/lib/kubelet/config.yaml") // where kubeadm puts it
	f.KubeletConfigured = err == nil
	if c.Driver == config.Cgroupfs && c.SystemContainer != "" {
		f.Loose = len(m.Loose())
	}
	return nil
}

func (m *Machine) daemon(ctx context.Context, key string, pid int) plan.Daemon {
	p := process{m, pid}
	d := plan.Daemon{Key: key, PID: pid, Name: p.read("comm"), Executable: p.executable(), Cgroup: p.cgroup()}
	if s, err := p.stat(); err == nil {
		d.Start = s.Start
	}
	d.Score, _ = strconv.Atoi(p.read("oom_score_adj"))
	if m.Units != nil {
		d.Unit, _ = m.Units.UnitOf(ctx, pid) // for messages only
	}
	return d
}

// Alive reports whether the process that started then has the pid still.
func (m *Machine) Alive(pid int, start uint64) bool {
	s, err := process{m, pid}.stat()
	return err == nil && s.Start == start
}

// Score reads the OOM score of a process.
func (m *Machine) Score(pid int) (string, bool) {
	text, err := os.ReadFile(m.ScoreFile(pid))
	return strings.TrimSpace(string(text)), err == nil
}

// ScoreFile is where the OOM score of a process is.
func (m *Machine) ScoreFile(pid int) string { return process{m, pid}.file("oom_score_adj") }

// ScoreOf is the OOM score adjustment of a container, by its cgroup: the least that one of its
// processes has. Each may raise its own, and only a privileged one can lower it, so the least is
// what the container was given. False is for a cgroup without processes.
func (m *Machine) ScoreOf(group string) (least int, ok bool) {
	g, err := m.Cgroups.Open(group)
	if err != nil {
		return 0, false
	}
	defer g.Close()
	pids, err := g.AllProcs()
	if err != nil {
		return 0, false
	}
	for _, pid := range pids {
		text, _ := m.Score(pid)
		if score, err := strconv.Atoi(text); err == nil && (!ok || score < least) {
			least, ok = score, true
		}
	}
	return least, ok
}
