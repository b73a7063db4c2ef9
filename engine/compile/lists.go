package compile

import (
	"path"
	"strconv"

	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/program"
	"golang.org/x/sys/unix"
)

// manyPaths is from how many paths on calls are repeated for each, instead of being
// written down for each.
const manyPaths = 512

// eachPath does the same with every path of a list.
func (c *compiler) eachPath(paths []plan.Path, what func(string) string, do func(way)) {
	if len(paths) < manyPaths {
		for i := range paths {
			c.Because(paths[i].At, what(paths[i].Path))
			do(c.way(paths[i].Path))
		}
		return
	}
	// Those below one mount can be had from the same descriptor.
	groups := map[spot][]plan.Path{}
	var order []spot
	for i := range paths {
		s := c.spot(paths[i].Path)
		if s.rest == "." { // the mount itself is opened otherwise
			c.Because(paths[i].At, what(paths[i].Path))
			do(c.way(paths[i].Path))
			continue
		}
		s.rest = ""
		if groups[s] == nil {
			order = append(order, s)
		}
		groups[s] = append(groups[s], paths[i])
	}
	for _, s := range order {
		first := groups[s][0]
		c.Because(path.Dir(first.At), what("one of "+strconv.Itoa(len(groups[s]))+" paths from "+first.Path+" on"))
		c.loop(s, groups[s], do)
	}
}

// loop repeats calls for each path of a list. There is no arithmetic in a Program: what
// goes from one path to the next is the offset of a file in memory that holds them.
func (c *compiler) loop(from spot, paths []plan.Path, do func(way)) {
	// A record is the path from the mount that it lies below, and the path from the root.
	var rests, names []string
	rest, name := 0, 0
	for i := range paths {
		r, n := c.spot(paths[i].Path).rest, relative(paths[i].Path)
		rests, names = append(rests, r), append(names, n)
		rest, name = max(rest, len(r)+1), max(name, len(n)+1)
	}
	all := make([]byte, len(paths)*(rest+name))
	for i := range paths {
		record := all[i*(rest+name):]
		copy(record, rests[i])
		copy(record[rest:], names[i])
	}
	list, old, made := c.Cell(), c.NewLabel(), c.NewLabel()
	title := c.CString("paths").Arg()
	c.Call(unix.SYS_MEMFD_CREATE, title, program.Int(unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL)).Into(list).Expect(old, unix.EINVAL)
	c.Place(made)
	c.aside(old, made, func() { // before Linux 6.3, where nothing can forbid it
		c.Call(unix.SYS_MEMFD_CREATE, title, program.Int(unix.MFD_CLOEXEC)).Into(list)
	})
	c.Call(unix.SYS_WRITE, list.Value(), c.Bytes(all).Arg(), program.Int(int64(len(all))))
	c.Call(unix.SYS_LSEEK, list.Value(), program.Int(0), program.Int(unix.SEEK_SET))

	record := c.Zeroed(rest + name)
	next, end := c.here(), c.NewLabel()
	c.Call(unix.SYS_READ, list.Value(), record.Arg(), program.Int(int64(rest+name))).ZeroFails().Expect(end, unix.EPIPE)
	from.name = record
	named := c.named("/")
	named.name = record.Plus(rest)
	do(way{from, named})
	c.Jump(next)
	c.Place(end)
	c.Call(unix.SYS_CLOSE, list.Value())
}

// here is a label in front of the next call.
func (c *compiler) here() program.Label {
	l := c.NewLabel()
	c.Place(l)
	return l
}
