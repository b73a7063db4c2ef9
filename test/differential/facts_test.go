package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/test/inside/view"
)

// facts are what came of a run, by a name of each. Those whose name begins with "~" are for reading
// only.
type facts map[string]string

// flatten notes the parts of a JSON value.
func (f facts) flatten(name string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, part := range v {
			f.flatten(name+"."+key, part)
		}
	case []any:
		for i, part := range v {
			f.flatten(name+"."+strconv.Itoa(i), part)
		}
	case nil:
	case string:
		f[name] = v
	default:
		f[name] = fmt.Sprint(v)
	}
}

// statusLines are those of /proc/self/status that tell of something else than of memory used.
var statusLines = strings.Fields(`Umask Uid Gid Groups CapInh CapPrm CapEff CapBnd CapAmb NoNewPrivs Seccomp Seccomp_filters SigBlk SigIgn TracerPid
	Speculation_Store_Bypass SpeculationIndirectBranch Cpus_allowed_list Mems_allowed_list THP_enabled CoreDumping`)

// report notes what a process inside said: the prelude's lines, and the helper's.
func (f facts) report(prefix, text string, n *normaliser) {
	var r view.Report
	signals := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "S SigIgn:"), strings.HasPrefix(line, "S SigBlk:"):
			signals += strings.Join(strings.Fields(line[2:]), "")
		case strings.HasPrefix(line, "L Max open files"):
			f[prefix+"limit.NOFILE"] = strings.Join(strings.Fields(line)[4:6], ":")
		case strings.HasPrefix(line, "S "), strings.HasPrefix(line, "L "):
		case strings.HasPrefix(line, "REPORT "):
			if err := json.Unmarshal([]byte(line[7:]), &r); err != nil {
				f[prefix+"report"] = err.Error()
				return
			}
		default:
			f["~"+prefix+"said"] += line + "\n"
		}
	}
	if r.Args == nil {
		return
	}
	if signals != "" {
		f[prefix+"signals"] = signals
	}
	f.process(prefix, &r.View, n)
	f.mounts(prefix, r.Mounts)
	for _, file := range r.Tree {
		f[prefix+"file "+file.Name] = describe(file)
	}
	for _, a := range r.Attempts {
		if a.Errno == "" {
			a.Errno = "works"
		}
		f[prefix+a.What] = a.Errno
	}
	for name, value := range r.Controls {
		f[prefix+"prctl "+name] = strconv.Itoa(value)
	}
	for name, value := range r.Values {
		f[prefix+name] = value
	}
	if f[prefix+"namespace net"] != callers { // those of the caller's come and go
		f[prefix+"sockets"] = strconv.Itoa(len(r.Sockets))
	}
}

// process notes a process's own attributes.
func (f facts) process(prefix string, v *view.View, n *normaliser) {
	for _, name := range statusLines {
		f[prefix+"status "+name] = v.Status[name]
	}
	f[prefix+"cwd"], f[prefix+"exe"] = v.Cwd, v.Exe
	f[prefix+"args"] = fmt.Sprintf("%q", v.Args)
	f[prefix+"env"] = fmt.Sprintf("%q", slices.Sorted(slices.Values(v.Env)))
	f[prefix+"pid"] = class(v.PID, 1, "1")
	f[prefix+"ppid"] = class(v.PPID, 0, "0")
	f[prefix+"session"] = class(v.SID, v.PID, "own")
	for kind, inode := range v.NS {
		f[prefix+"namespace "+kind] = n.namespace(kind, inode)
	}
	for name, l := range v.Limits {
		if name != "RLIMIT_NOFILE" || prefix != "" {
			f[prefix+"limit "+name] = fmt.Sprintf("%d:%d", l.Soft, l.Hard)
		}
	}
	for number, target := range v.FDs {
		f[prefix+"descriptor "+strconv.Itoa(number)] = target
	}
	for _, line := range v.Cgroups {
		words := strings.SplitN(line, ":", 3)
		f[prefix+"cgroup of "+words[1]] = words[2]
	}
	for name, value := range map[string]any{
		"uid_map": v.UIDMap, "gid_map": v.GIDMap, "setgroups": v.Setgroup, "oom_score_adj": v.OOMScore, "hostname": v.Hostname, "domainname": v.Domain,
		"machine": v.Machine, "personality": v.Persona, "scheduler": v.Sched, "ioprio": v.IOPrio, "mempolicy": v.MemPol, "cpus": v.CPUs, "keyring": v.Keyring,
		"timens_offsets": v.Offsets,
	} {
		f[prefix+name] = fmt.Sprint(value)
	}
	for _, l := range v.Links {
		f[prefix+"link "+l.Name] = fmt.Sprintf("up=%v mtu=%d %v", l.Up, l.MTU, l.Addresses)
	}
	if t := v.TTY; t != nil {
		f[prefix+"terminal"] = fmt.Sprintf("%dx%d onlcr=%v controls=%v %s uid=%d mode=%o", t.Rows, t.Cols, t.ONLCR, t.Controls, t.Name, t.UID, t.Mode)
	}
}

func class(value, wanted int, name string) string {
	if value == wanted {
		return name
	}
	return "not " + name
}

// mounts notes each mount by its target; of several on one, each in turn, the lowest first. (Linux
// lists mounts in the order in which they were made, detached ones before they are attached.)
func (f facts) mounts(prefix string, mounts []view.Mount) {
	byID := map[int]view.Mount{}
	count := map[string]int{}
	for _, m := range mounts {
		byID[m.ID] = m
	}
	depth := func(m view.Mount) (n int) {
		for at, there := byID[m.Parent]; there && n < len(mounts); at, there = byID[at.Parent] {
			n++
		}
		return n
	}
	mounts = slices.Clone(mounts)
	slices.SortStableFunc(mounts, func(a, b view.Mount) int { return depth(a) - depth(b) })
	for _, m := range mounts {
		name := prefix + "mount " + m.Target
		count[name]++
		if count[name] > 1 {
			name += "#" + strconv.Itoa(count[name])
		}
		var propagation []string
		for _, word := range m.Optional {
			kind, _, _ := strings.Cut(word, ":")
			propagation = append(propagation, kind)
		}
		f[name+" type"], f[name+" root"], f[name+" source"] = m.Type, m.Root, m.Source
		f[name+" options"], f[name+" super"] = strings.Join(m.Options, ","), strings.Join(m.Super, ",")
		f[name+" propagation"] = strings.Join(propagation, ",")
		f[name+" parent"] = byID[m.Parent].Target
	}
}

func describe(file view.File) string {
	if file.Error != "" {
		return file.Error
	}
	text := fmt.Sprintf("%s %04o %d:%d", file.Type, file.Mode, file.UID, file.GID)
	switch file.Type {
	case "link":
		text += " -> " + file.LinkTarget
	case "char", "block":
		text += fmt.Sprintf(" %d:%d", file.Major, file.Minor)
	case "file":
		text += fmt.Sprintf(" %d bytes", file.Size)
	}
	return text
}

// hooks notes what the hooks wrote, in their order, about a container whose first process is pid, 0
// where it was not created.
func (w *worker) hooks(f facts, s *setup, n *normaliser, pid int) {
	for place, path := range map[string]string{"host": filepath.Join(s.dir, "hooks"), "inside": filepath.Join(s.dir, "rootfs/tmp/hooks")} {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		number := 0
		for line := range strings.Lines(string(text)) {
			var call view.HookCall
			if err := json.Unmarshal([]byte(line), &call); err != nil {
				continue
			}
			number++
			prefix := fmt.Sprintf("hook %s %d %s ", place, number, call.Name)
			f.process(prefix, &call.View, n)
			delete(f, prefix+"pid")
			var state map[string]any
			if err := json.Unmarshal([]byte(call.State), &state); err != nil {
				f[prefix+"state"] = err.Error()
				continue
			}
			if told, ok := state["pid"].(float64); ok && told > 10 {
				state["pid"] = "the container's on the host"
				if pid > 0 && int(told) != pid {
					state["pid"] = "another one of the host"
				}
			}
			f.flatten(prefix+"state", state)
			for name, file := range call.View.Files {
				f[prefix+"file "+name] = describe(file)
			}
		}
	}
}
