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
			"A bundle is a folder with a config.json and a root file system. The file is a JSON object as the OCI runtime specification 1.x has it for Linux. It is read strictly: duplicate keys, values of a wrong type and contradictions are refused, all at once, each with the JSON pointer of its place. Unknown fields are ignored.",
			"berth spec writes one to begin with, berth explain tells what becomes of one. These annotations are Berth's own:",
		}, [][2]string{
			{"run.berth.root.writes", "discard: what is written to the root file system is kept in memory, and lost with the container."},
			{"run.berth.root.readonly", "/PATH: a folder of such a root file system that can't be written to at all; its sockets and pipes are not the host's, as they would be in a read-only mount."},
			{"run.berth.landlock.read, run.berth.landlock.execute, run.berth.landlock.write", "Absolute paths with colons between them, below which files may be read, executed, or written and made; all others may not."},
			{"org.systemd.property.NAME", "A property of the unit that systemd makes, in gvariant text."},
		}},
		{"berth-state", "what is told of a container by state, list and to hooks", []string{
			"A JSON object; berth list --format json writes an array of them.",
		}, [][2]string{
			{"ociVersion", "The version of the specification that the config.json was written for."},
			{"id", "The container's name."},
			{"status", "creating, created, running, paused or stopped."},
			{"pid", "Its first process as the host knows it; 0 where there is none."},
			{"bundle, rootfs", "The folders it was made from."},
			{"created", "When it was made, by RFC 3339."},
			{"annotations", "Those of the config.json."},
			{"owner", "The user who made it."},
		}},
		{"berth-report", "what berth box --report json writes", []string{
			"A JSON object in one line. Times are in nanoseconds, sizes in bytes. What is not known is left out.",
		}, [][2]string{
			{"id, status, signal, timedOut", "The box; the exit status as the shell would have it; the signal that killed the command; whether it was --timeout."},
			{"wall", "From the beginning of berth to the end of the command."},
			{"cpu", "user and system time; throttled, for how long --cpus held it back; whole is false where it is of the command alone, as the box had no cgroup."},
			{"memory", "peak, limit; oomKills, the number of OOM-killed processes, and oomBy, the limit that did it."},
			{"io", "read from and written to block devices."},
			{"pids", "peak, limit, and refused, how often the limit was hit."},
		}},
	}
}
