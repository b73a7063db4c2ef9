package clidoc

import "strings"

// A format is a kind of file that has a page of its own.
type format struct {
	name, summary string
	paragraphs    []string
	fields        [][2]string
}

// Formats makes the pages of the files that the programs read and write.
func Formats(source string) []Page {
	var pages []Page
	for _, f := range formats() {
		var b strings.Builder
		m := manWriter{&b}
		m.line(".TH", strings.ToUpper(f.name), "5", "", source, "Berth")
		m.line(".SH", "NAME")
		m.text(f.name + " - " + f.summary)
		m.line(".SH", "DESCRIPTION")
		for i, p := range f.paragraphs {
			if i > 0 {
				m.raw(".PP")
			}
			m.text(p)
		}
		m.line(".SH", "FIELDS")
		for _, field := range f.fields {
			m.raw(".TP")
			m.raw(".B")
			m.text(field[0])
			m.text(field[1])
		}
		m.line(".SH", "SEE ALSO")
		m.text("berth(1)")
		pages = append(pages, Page{File: f.name + ".5", Text: []byte(b.String())})
	}
	return pages
}

func formats() []format {
	return []format{
		{"berth-config", "the config.json of a bundle", []string{
			"A bundle is a directory with a config.json and a root file system. The file is a JSON object as defined by the OCI runtime specification 1.x for Linux. It is parsed strictly: duplicate keys, values of the wrong type and contradictions are errors, reported all at once, each with its JSON pointer. Unknown fields are ignored.",
			"berth spec writes a starter file, berth explain shows what one leads to. These annotations are Berth's own:",
		}, [][2]string{
			{"run.berth.root.writes", "discard: writes to the root file system go to memory, and are lost with the container."},
			{"run.berth.root.readonly", "/PATH: a directory of such a root file system that is read-only; unlike in a read-only mount, its sockets and FIFOs are not the host's."},
			{"run.berth.landlock.read, run.berth.landlock.execute, run.berth.landlock.write", "Absolute paths, separated by colons, below which files may be read, executed, or written and created. Everything else is refused."},
			{"run.berth.seccomp.denials", "true: a process of Berth's names what the seccomp filter refuses, for as long as the container runs, in berth inspect and events. It is not needed for run, exec and box, which have --explain-denials."},
			{"run.berth.seccomp.learn", "true: it also records the system calls, as a profile ID.json in the directory that berth.toml names."},
			{"org.systemd.property.NAME", "A property of the systemd unit, in GVariant text."},
		}},
		{"berth.toml", "the host's settings for berth, its shim and berth-node", []string{
			"/etc/berth/berth.toml has lines of KEY = VALUE and comments, in the syntax of TOML. It may be missing. Unknown and duplicate keys and wrong values are errors with the line number. The file is refused if another user owns it or everyone may write to it. Options of the commands and of the shim override it.",
			"It is for containers whose config.json leaves their place open. An absolute cgroupsPath is always the path of a cgroup, and with --systemd-cgroup slice:prefix:name always names a unit. In a service or scope with Delegate=yes everything is below that unit.",
		}, [][2]string{
			{"cgroup-driver", "What creates their cgroups: systemd, cgroupfs, or auto (the default) for systemd if it is the init system."},
			{"cgroup-parent", "The cgroup that they are below, as an absolute path; under systemd /foo/bar is foo-bar.slice. The default is /machine (machine.slice) under systemd, and otherwise /berth. berth-node apply sets it to the cgroup of the workloads. Containers of ordinary users are in user.slice of their own systemd."},
			{"seccomp-learn-directory", "Where seccomp profiles go that are recorded of containers with the annotation run.berth.seccomp.learn. It belongs to root and no one else may write to it. Without this key nothing is recorded."},
			{"root", "The state directory of the root user's containers, /run/berth by default; that of the shim is an option of the shim."},
		}},
		{"berth-state", "a container's state, as shown by state and list and passed to hooks", []string{
			"A JSON object; berth list --format json writes an array of them.",
		}, [][2]string{
			{"ociVersion", "The version of the specification that the config.json was written for."},
			{"id", "The container's name."},
			{"status", "creating, created, running, paused or stopped."},
			{"pid", "Its first process, in the host's pid namespace; 0 if there is none."},
			{"bundle, rootfs", "The directories it was created from."},
			{"created", "When it was created (RFC 3339)."},
			{"annotations", "Those of the config.json."},
			{"owner", "The user who created it."},
		}},
		{"berth-report", "what berth box --report json writes", []string{
			"A JSON object in one line. Times are in nanoseconds, sizes in bytes. Unknown values are omitted.",
		}, [][2]string{
			{"id, status, signal, timedOut", "The box; the exit status as a shell reports it; the signal that killed the command; whether --timeout did."},
			{"wall", "From the start of berth to the end of the command."},
			{"cpu", "user and system time; throttled, for how long --cpus throttled it; whole is false if the box had no cgroup, so only the command itself is counted."},
			{"memory", "peak, limit; oomKills, the number of OOM-killed processes, and oomBy, the limit that did it."},
			{"io", "read from and written to block devices."},
			{"pids", "peak, limit, and refused, how often the limit was reached."},
		}},
	}
}
