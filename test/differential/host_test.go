package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/inside/view"
)

// look notes what of the host a run could change: mounts, cgroups, processes, files of the bundle,
// the host's name and devices.
func (w *worker) look(s *setup) facts {
	f := facts{}
	for _, m := range ownMounts() {
		f["mount "+m.Target] += m.Type + " " + strings.Join(m.Options, ",") + ";"
		for _, word := range m.Optional {
			kind, _, _ := strings.Cut(word, ":")
			f["mount "+m.Target] += kind + ";"
		}
	}
	for _, dir := range cgroupsNamed(s.id) {
		f["cgroup "+dir] = "there"
	}
	for _, pid := range children() {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		state := "?"
		if _, after, ok := strings.Cut(string(text), ") "); ok {
			state = after[:1]
		}
		f["process "+state] = "there"
	}
	filepath.WalkDir(s.dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			f["file "+path] = hostFile(path)
		}
		return nil
	})
	for _, e := range w.Engines {
		filepath.WalkDir(w.root(e), func(path string, _ fs.DirEntry, err error) error {
			if filepath.Base(path) != "pid" && path != w.root(e) {
				f["state "+path] = "there"
			}
			return nil
		})
	}
	for _, path := range []string{"/dev/null", "/dev/zero", "/dev/tty", "/dev/ptmx", "/dev/full"} {
		f["file "+path] = hostFile(path)
	}
	f["hostname"], _ = os.Hostname()
	return f
}

func hostFile(path string) string {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return err.Error()
	}
	if strings.HasSuffix(path, "/hooks") {
		return "there"
	}
	return fmt.Sprintf("%o %d:%d", st.Mode, st.Uid, st.Gid)
}

// differences notes what is other now.
func (f facts) differences(prefix string, before, now facts) {
	for name, value := range now {
		if before[name] != value {
			f[prefix+" "+name] = value
		}
	}
	for name := range before {
		if _, there := now[name]; !there {
			f[prefix+" "+name] = "gone"
		}
	}
}

func ownMounts() []view.Mount {
	text, _ := os.ReadFile("/proc/self/mountinfo")
	return view.ParseMountinfo(string(text))
}

// hierarchies are the mounted ones, by the words that /proc/PID/cgroup calls them.
func hierarchies() map[string]string {
	all := map[string]string{}
	lines, _ := os.ReadFile("/proc/self/cgroup")
	for _, m := range ownMounts() {
		if m.Type == "cgroup2" {
			all[""] = m.Target
		}
		if m.Type != "cgroup" {
			continue
		}
		for line := range strings.Lines(string(lines)) {
			controllers := strings.SplitN(line, ":", 3)[1]
			first, _, _ := strings.Cut(controllers, ",")
			for _, word := range m.Super {
				if controllers != "" && word == first {
					all[controllers] = m.Target
				}
			}
		}
	}
	return all
}

func cgroupsNamed(id string) []string {
	var found []string
	for _, dir := range hierarchies() {
		filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return nil
			}
			if e.IsDir() && strings.Contains(path, id) {
				found = append(found, path)
			}
			return nil
		})
	}
	return found
}

// killCgroups ends what is in the cgroups whose name has a word in it. What is frozen does not die.
func killCgroups(name string) {
	for _, dir := range cgroupsNamed(name) {
		os.WriteFile(filepath.Join(dir, "freezer.state"), []byte("THAWED"), 0)
		os.WriteFile(filepath.Join(dir, "cgroup.freeze"), []byte("0"), 0)
		text, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		for _, word := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil && pid > 1 && pid != os.Getpid() {
				unix.Kill(pid, unix.SIGKILL)
			}
		}
	}
}

// removeCgroups removes all whose name has a word in it. What was killed leaves a moment later.
func removeCgroups(name string) {
	for end := time.Now().Add(deadline / 3); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		dirs := cgroupsNamed(name)
		for _, dir := range slices.Backward(dirs) {
			unix.Rmdir(dir)
		}
		if len(dirs) == 0 {
			return
		}
	}
}

// uninteresting are files of cgroups that count, or that only take commands.
var uninteresting = regexp.MustCompile(`^(cgroup\.(procs|threads|kill|event_control|clone_children)|tasks|notify_on_release|.*(usage|failcnt|peak|pressure|reclaim|force_empty|stat|events|memsw\.max_usage).*)$`)

// cgroups notes where a process is in each hierarchy, and what is set there. The worker is in the
// cgroup own.
func (f facts) cgroups(pid int, own string) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return
	}
	mounted := hierarchies()
	for line := range strings.Lines(strings.TrimSpace(string(text))) {
		words := strings.SplitN(strings.TrimSpace(line), ":", 3)
		dir, ok := mounted[words[1]]
		if !ok {
			continue
		}
		name := words[1]
		if name == "" {
			name = "v2"
		}
		f["cgroup path "+name] = words[2]
		dir = filepath.Join(dir, words[2])
		if words[2] == "/" || !strings.Contains(strings.TrimPrefix(words[2], own), "bd") {
			continue // not the container's
		}
		f["cgroup owner "+name] = hostFile(dir)
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			info, err := e.Info()
			if err != nil || e.IsDir() || uninteresting.MatchString(e.Name()) || info.Mode().Perm()&0o200 == 0 && e.Name() != "devices.list" {
				continue
			}
			if data, err := os.ReadFile(filepath.Join(dir, e.Name())); err == nil {
				text := strings.TrimSpace(string(data))
				if e.Name() != "devices.list" {
					f["cgroup file "+e.Name()] = text
					continue
				}
				for _, rule := range strings.Split(text, "\n") {
					f["cgroup device "+rule] = "allowed"
				}
			}
		}
	}
}

// outside notes what of a created container's process others can see.
func (f facts) outside(pid int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid))
	f["created oom_score_adj"] = strings.TrimSpace(string(text))
}

// A normaliser puts words in the place of what differs by chance.
type normaliser struct {
	replacer   *strings.Replacer
	namespaces map[string]string
}

func (w *worker) normaliser(e engine, s *setup) *normaliser {
	n := &normaliser{namespaces: map[string]string{}}
	n.replacer = strings.NewReplacer(s.dir, "<bundle>", w.root(e), "<root>", w.dir, "<work>", s.id, "<id>",
		w.own+"/supervisor", "<own>", // where Berth's first rootless run has brought the caller
		w.own, "<own>")
	links, _ := filepath.Glob("/proc/self/ns/*")
	for _, link := range links {
		n.namespaces[filepath.Base(link)], _ = os.Readlink(link)
	}
	return n
}

// callers is what stands for a namespace of the caller's.
const callers = "the caller's"

func (n *normaliser) namespace(kind, inode string) string {
	if inode == n.namespaces[kind] {
		return callers
	}
	return "another"
}

func (n *normaliser) pid(text string, pid int) string {
	if text == strconv.Itoa(pid) && pid > 0 {
		return "a pid"
	}
	return fmt.Sprintf("%q", text)
}

var (
	processes = regexp.MustCompile(`^/proc/\d+`)
	others    = regexp.MustCompile(`bd\d+-\d+`) // containers of the other workers
	inode     = regexp.MustCompile(`\b(pipe|socket|mnt|net|pid|user|uts|ipc|cgroup|time):\[\d+\]`)
)

// all normalises both names and values. A hierarchy that some config mounts is there for all as
// long as that one runs.
func (n *normaliser) all(f facts) facts {
	out := facts{}
	for name, value := range f {
		value = processes.ReplaceAllString(inode.ReplaceAllString(n.replacer.Replace(value), "$1"), "/proc/<pid>")
		if name = n.replacer.Replace(name); !others.MatchString(name) && !strings.Contains(name, "cgroup of net_") {
			out[name] = value
		}
	}
	return out
}
