package changes

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/cmd/berth/internal/cgrouptool"
	"github.com/berth-runtime/berth/internal/escape"
	"github.com/berth-runtime/berth/internal/json"
	"golang.org/x/sys/unix"
)

// Text is a line for each change, and a summary.
func (s *Set) Text() string {
	var b strings.Builder
	for i := range s.List {
		c := &s.List[i]
		fmt.Fprintf(&b, "%c %s %-9s %7s %s%s\n", c.Kind, c.permissions(), c.owner(), c.size(), c.shown(c.Path), c.note())
	}
	b.WriteString(s.summary())
	return b.String()
}

// Tree is the same by directories.
func (s *Set) Tree() string {
	var b strings.Builder
	var open []string // the directories that the last line was in
	for i := range s.List {
		c := &s.List[i]
		parts := strings.Split(strings.TrimPrefix(c.Path, "/"), "/")
		common := 0
		for common < len(parts)-1 && common < len(open) && open[common] == parts[common] {
			common++
		}
		for depth := common; depth < len(parts)-1; depth++ {
			fmt.Fprintf(&b, "%s  %s/\n", strings.Repeat("  ", depth), escape.Line(parts[depth]))
		}
		last := len(parts) - 1
		fmt.Fprintf(&b, "%s%c %s", strings.Repeat("  ", last), c.Kind, c.shown(parts[last]))
		if size := c.size(); size != "" && c.Kind != Deleted {
			b.WriteString(" " + size)
		}
		b.WriteString(c.note() + "\n")
		open = parts
		if c.State.kind() != unix.S_IFDIR {
			open = parts[:last]
		}
	}
	b.WriteString(s.summary())
	return b.String()
}

func (s *Set) summary() string {
	if len(s.List) == 0 {
		return "no changes\n"
	}
	text := fmt.Sprintf("%d added, %d modified, %d deleted", s.Count(Added), s.Count(Modified), s.Count(Deleted))
	if n := s.Bytes(); n > 0 {
		text += "; " + cgrouptool.Size(uint64(n)) + " in files"
	}
	for _, name := range s.Unknown {
		text += "\nnot known: what was deleted of " + escape.Line(name) + ", which can't be listed"
	}
	return text + "\n"
}

// shown is a name as a line may have it.
func (c *Change) shown(name string) string {
	name = escape.Line(name)
	switch {
	case c.kind() == unix.S_IFDIR && name != "/":
		return name + "/"
	case c.kind() == unix.S_IFLNK:
		return name + " -> " + escape.Line(c.Target)
	}
	return name
}

// note tells what else it has, and what a modified one was, where that is another thing than now.
func (c *Change) note() string {
	text := ""
	if len(c.Gained) > 0 {
		text = " with " + escape.Line(strings.Join(c.Gained, ", "))
	}
	if c.Link != "" {
		text += " another name of " + escape.Line(c.Link)
	}
	if c.Was == nil {
		return text
	}
	var was []string
	add := func(differs bool, text string) {
		if differs {
			was = append(was, text)
		}
	}
	old := Change{State: *c.Was}
	if add(c.kind() != old.kind(), "a "+old.Type()); c.kind() == old.kind() {
		add(c.Mode != old.Mode, old.permissions())
		add(c.Size != old.Size, old.size())
		add(c.Target != old.Target, "-> "+escape.Line(old.Target))
	}
	add(c.UID != old.UID || c.GID != old.GID, old.owner())
	if len(was) == 0 {
		return text
	}
	return text + " (was " + strings.Join(was, ", ") + ")"
}

func (c *Change) owner() string {
	return strconv.FormatUint(uint64(c.UID), 10) + ":" + strconv.FormatUint(uint64(c.GID), 10)
}

func (c *Change) size() string {
	if c.kind() != unix.S_IFREG {
		return ""
	}
	return cgrouptool.Size(uint64(c.Size))
}

// permissions are as ls(1) has them.
func (c *Change) permissions() string {
	text := []byte("-rwxrwxrwx")
	switch c.kind() {
	case unix.S_IFDIR:
		text[0] = 'd'
	case unix.S_IFLNK:
		text[0] = 'l'
	case unix.S_IFIFO:
		text[0] = 'p'
	case unix.S_IFSOCK:
		text[0] = 's'
	case unix.S_IFCHR:
		text[0] = 'c'
	case unix.S_IFBLK:
		text[0] = 'b'
	}
	for i := range 9 {
		if c.Mode&(1<<(8-i)) == 0 {
			text[1+i] = '-'
		}
	}
	for i, bit := range [...]uint32{unix.S_ISUID, unix.S_ISGID, unix.S_ISVTX} {
		if c.Mode&bit != 0 {
			at, letter := 3*i+3, "sst"[i]
			if text[at] == '-' {
				letter -= 'a' - 'A'
			}
			text[at] = letter
		}
	}
	return string(text)
}

// JSON is the same for programs.
func (s *Set) JSON() []byte {
	w := json.NewWriter(nil, "")
	w.Object()
	w.Key("changes").Array()
	for i := range s.List {
		c := &s.List[i]
		w.Object()
		w.Key("kind").String(string(rune(c.Kind)))
		w.Key("path").String(c.Path)
		c.State.write(w)
		if len(c.Gained) > 0 {
			w.Key("attributes").Strings(c.Gained)
		}
		if c.Was != nil {
			w.Key("was").Object()
			c.Was.write(w)
			w.End()
		}
		w.End()
	}
	w.End()
	w.Key("added").Int(int64(s.Count(Added)))
	w.Key("modified").Int(int64(s.Count(Modified)))
	w.Key("deleted").Int(int64(s.Count(Deleted)))
	w.Key("bytes").Int(s.Bytes())
	if len(s.Unknown) > 0 {
		w.Key("unknown").Strings(s.Unknown)
	}
	w.End()
	return append(w.Bytes(), '\n')
}

func (s *State) write(w *json.Writer) {
	w.Key("type").String(s.Type())
	w.Key("mode").String(fmt.Sprintf("%04o", s.Mode&0o7777))
	w.Key("uid").Uint(uint64(s.UID))
	w.Key("gid").Uint(uint64(s.GID))
	if s.kind() == unix.S_IFREG {
		w.Key("size").Int(s.Size)
	}
	if s.Target != "" {
		w.Key("target").String(s.Target)
	}
}
