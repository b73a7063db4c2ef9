package mountinfo

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Entry is one mount, a line of proc_pid_mountinfo(5).
type Entry struct {
	ID, Parent int
	Root       string // what of its file system is mounted
	Point      string // where, below the root of the process
	Options    string // of the mount
	Type       string
	Super      string // options of the file system
}

// Of lists the mounts of a process, by "self" or its number.
func Of(process string, types ...string) ([]Entry, error) {
	text, err := os.ReadFile("/proc/" + process + "/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("list the mounts of process %s: %w", process, err)
	}
	return Parse(string(text), types...), nil
}

// Parse reads a table, or those of its lines that are of the given types. A line
// that can't be read is passed over: one odd mount must not hide the others.
func Parse(text string, types ...string) []Entry {
	var entries []Entry
	for line := range strings.Lines(text) {
		// Names have their spaces escaped, so the first " - " is the separator.
		head, tail, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		kind, _, _ := strings.Cut(tail, " ")
		if !ok || len(types) > 0 && !slices.Contains(types, kind) {
			continue
		}
		if e, ok := parseLine(head, tail); ok {
			entries = append(entries, e)
		}
	}
	return entries
}

// parseLine reads what is before and behind the separator. Fields end at one space and nothing
// else: the kernel escapes space, tab, line feed and backslash (show_mountinfo), so a mount point
// may hold U+00A0 or a carriage return as it is, and the source of a mount may be empty.
func parseLine(head, tail string) (Entry, bool) {
	var e Entry
	var err error
	n := 0
	for field := range strings.SplitSeq(head, " ") {
		switch n {
		case 0:
			e.ID, err = strconv.Atoi(field)
		case 1:
			e.Parent, err = strconv.Atoi(field)
		case 3:
			e.Root = unescape(field)
		case 4:
			e.Point = unescape(field)
		case 5:
			e.Options = field
		}
		if err != nil {
			return e, false
		}
		n++
	}
	behind := 0
	for field := range strings.SplitSeq(tail, " ") {
		if behind == 0 {
			e.Type = unescape(field) // with a FUSE file system's own name behind the dot
		}
		e.Super = field // the last
		behind++
	}
	return e, n >= 6 && behind >= 2 && e.Options != "" && e.Type != ""
}

// Holding finds the mount that a path lies on: the last one whose mount point is
// the longest above it.
func Holding(entries []Entry, path string) (Entry, bool) {
	best, found := Entry{}, false
	for _, e := range entries {
		above := e.Point == "/" || path == e.Point || strings.HasPrefix(path, e.Point+"/")
		if above && len(e.Point) >= len(best.Point) {
			best, found = e, true
		}
	}
	return best, found
}

// HasOption reports whether a comma-separated list contains the option.
func HasOption(list, option string) bool {
	for part := range strings.SplitSeq(list, ",") {
		if part == option {
			return true
		}
	}
	return false
}

// unescape undoes the octal escapes (\040 and such) of odd characters.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) && isOctal(s[i+1]) && isOctal(s[i+2]) && isOctal(s[i+3]) {
			out = append(out, (s[i+1]-'0')<<6|(s[i+2]-'0')<<3|(s[i+3]-'0'))
			i += 3
			continue
		}
		out = append(out, s[i])
	}
	return string(out)
}

func isOctal(c byte) bool { return c >= '0' && c <= '7' }
