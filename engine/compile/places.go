package compile

import (
	"strings"

	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/program"
	"golang.org/x/sys/unix"
)

// A place is a mount that we have made, held by its descriptor. What lies below it
// is reached from there: another container that has the same root can exchange the
// directory it was mounted on, and the name then leads to something else, or nowhere.
type place struct {
	at   string
	tree program.Cell
	// fresh is a file system that only we have put anything into. No link in it
	// leads out of it.
	fresh bool
	mount int // its number among the Plan's mounts, or layered
}

// hold remembers a mount that was just attached.
func (c *compiler) hold(i int, tree program.Cell) {
	m := &c.p.Mounts[i]
	c.places = append(c.places, place{at: m.Destination, tree: tree, mount: i,
		fresh: !m.Bind && !m.Cgroup && !m.CopyUp && !onDevice(m.Type)})
}

// A spot is a path as it is resolved: from a descriptor.
type spot struct {
	dir     program.Arg
	rest    string
	resolve uint64
	held    bool // below a mount of ours
	open    bool // a link may lead out of that mount
	// name is where the path is found when the call is made, instead of rest.
	name program.Addr
}

// spot finds what a path is resolved from. Of two mounts the later one covers the
// earlier, wherever they are.
func (c *compiler) spot(path string) spot {
	for i := len(c.places) - 1; i >= 0; i-- {
		p := &c.places[i]
		if rest, ok := below(p.at, path); ok {
			return spot{dir: p.tree.Value(), rest: rest, resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS, held: true, open: !p.fresh}
		}
	}
	return c.named(path)
}

// named is a path that is resolved from the root.
func (c *compiler) named(path string) spot {
	dir := cwd
	if c.root != (program.Cell{}) {
		dir = c.root.Value()
	}
	return spot{dir: dir, rest: relative(path), resolve: inRoot}
}

// below makes a path relative to a directory that it lies in, or is.
func below(dir, path string) (string, bool) {
	if path == dir {
		return ".", true
	}
	if rest, ok := strings.CutPrefix(path, dir); ok && rest[0] == '/' {
		return rest[1:], true
	}
	return "", false
}

func (c *compiler) openSpot(s spot, flags, resolve uint64, into program.Cell) *program.Op {
	if s.held && s.rest == "." && flags&unix.O_DIRECTORY == 0 {
		// It may be a file, which has no "." in it.
		return c.Call(unix.SYS_OPEN_TREE, s.dir, c.empty.Arg(), program.Imm(unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)).Into(into)
	}
	how := c.how(flags, 0, s.resolve|resolve)
	if s.name != (program.Addr{}) {
		return c.openNamed(s.dir, s.name, how).Into(into)
	}
	return c.openAt(s.dir, s.rest, how).Into(into)
}

// A way is how to come to a path: from the mount that it lies below, or where a link
// leads out of that, by its names.
type way struct{ spot, named spot }

func (c *compiler) way(path string) way { return way{c.spot(path), c.named(path)} }

// find opens what a path of the container names.
func (c *compiler) find(path string, flags uint64, into program.Cell, absent program.Label, errnos ...unix.Errno) {
	c.follow(c.way(path), flags, into, absent, errnos...)
}

// follow opens what a way leads to; with one of the errnos it goes on at absent. Where a link leads
// out of the mount that the path is below, the path is resolved by its names, and not being there
// is an error: it may have been moved out of our way.
func (c *compiler) follow(w way, flags uint64, into program.Cell, absent program.Label, errnos ...unix.Errno) {
	s := w.spot
	if !s.open {
		c.openSpot(s, flags, 0, into).Expect(absent, errnos...)
		return
	}
	out, found := c.NewLabel(), c.NewLabel()
	c.openSpot(s, flags, 0, into).Expect(out, errnos...).Expect(out, unix.EXDEV)
	c.Place(found)
	c.aside(out, found, func() {
		gone := c.NewLabel()
		c.openSpot(w.named, flags, 0, into).Expect(gone, errnos...)
		c.aside(gone, found, func() { c.openSpot(s, flags, 0, into).Expect(absent, errnos...) })
	})
}

// need is find for what has to be there.
func (c *compiler) need(path string, flags uint64, into program.Cell) {
	s := c.spot(path)
	op := c.openSpot(s, flags, 0, into)
	if s.open {
		out, found := c.NewLabel(), c.NewLabel()
		op.Expect(out, unix.EXDEV)
		c.Place(found)
		c.aside(out, found, func() { c.openSpot(c.named(path), flags, 0, into) })
	}
}

// release closes the mounts that nothing lies below any more once mount number done
// is made. Descriptors are scarce where that is not left to closeOwn.
func (c *compiler) release(done int) {
	if !c.tidy {
		return
	}
	kept := c.places[:0]
	for _, p := range c.places {
		switch {
		case p.mount == layered, c.usedUntil(p.mount) > done, writtenFirst(&c.p.Mounts[p.mount]):
			kept = append(kept, p)
		case !c.hasPid || p.tree != c.proc:
			c.close(p.tree)
		}
	}
	c.places = kept
}

// isUsed reports whether something else lies below a mount, or is mounted there.
func (c *compiler) isUsed(mount int) bool { return c.usedUntil(mount) > mount }

func (c *compiler) usedUntil(mount int) int {
	if c.lastUse == nil {
		c.lastUse = lastUses(c.p)
	}
	return c.lastUse[mount]
}

// lastUses says for each mount which is the last one that has to do with a path below
// it; the number of mounts stands for all that comes after them.
func lastUses(p *plan.Plan) []int {
	last, end := make([]int, len(p.Mounts)), len(p.Mounts)
	use := func(path string, step int) {
		for i := min(step, end) - 1; i >= 0; i-- {
			if _, ok := below(p.Mounts[i].Destination, path); ok && !p.Mounts[i].Remount {
				last[i] = step
				return
			}
		}
	}
	for i := range p.Mounts {
		use(p.Mounts[i].Destination, i)
		if inside := p.Mounts[i].Inside; inside != "" {
			use(inside, i)
		}
	}
	for i := range p.Devices {
		use(p.Devices[i].Path, end)
	}
	for i := range p.Links {
		use(p.Links[i].Path, end)
	}
	for _, list := range [][]plan.Path{p.Masked, p.Readonly} {
		for i := range list {
			use(list[i].Path, end)
		}
	}
	if l := p.Process.Landlock; l != nil {
		for i := range l.Rules {
			use(l.Rules[i].Path, end)
		}
	}
	for _, path := range []string{p.Process.Cwd, masterOfTerminals, consolePath} {
		use(path, end)
	}
	return last
}
