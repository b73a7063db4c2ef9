package compile

import (
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/program"
	"golang.org/x/sys/unix"
)

// landlockRules makes the ruleset, in the container's root and while we may still
// pass through every directory on the way to a path.
func (c *compiler) landlockRules(p *plan.Process) program.Cell {
	l := p.Landlock
	if l == nil {
		return program.Cell{}
	}
	ruleset := c.Cell()
	c.Because(l.Rules[0].At, "make the Landlock ruleset")
	// struct landlock_ruleset_attr, as its first version has it: what it handles of
	// the file system.
	attr := c.Words(program.Imm(l.Handled))
	c.Call(unix.SYS_LANDLOCK_CREATE_RULESET, attr.Arg(), program.Int(8), program.Int(0)).Into(ruleset)
	for i := range l.Rules {
		r := &l.Rules[i]
		c.Because(r.At, "give rights on "+r.Path)
		file, done := c.NewLabel(), c.NewLabel()
		c.landlockRule(ruleset, r.Path, unix.O_PATH|unix.O_DIRECTORY, r.Access, &file)
		c.Place(done)
		c.aside(file, done, func() {
			c.landlockRule(ruleset, r.Path, unix.O_PATH, r.Access&plan.LandlockFile, nil)
		})
	}
	return ruleset
}

// landlockRule adds one rule. A path that is no directory goes on at the label.
func (c *compiler) landlockRule(ruleset program.Cell, path string, flags, access uint64, file *program.Label) {
	// struct landlock_path_beneath_attr is packed: 64 bits of rights, then the
	// descriptor of 32 bits.
	attr := c.Words(program.Imm(access), program.Int(0))
	fd := c.Cell()
	if file != nil {
		c.find(path, flags, fd, *file, unix.ENOTDIR)
	} else {
		c.need(path, flags, fd)
	}
	c.Call(program.Set, fd.Value()).IntoAddr(attr.Plus(8))
	const pathBeneath = 1
	c.Call(unix.SYS_LANDLOCK_ADD_RULE, ruleset.Value(), program.Int(pathBeneath), attr.Arg(), program.Int(0))
	c.close(fd)
}

// landlockEnforce binds us and what we become to the ruleset. The kernel wants
// no_new_privs or CAP_SYS_ADMIN for it; with the former it holds for everyone.
func (c *compiler) landlockEnforce(p *plan.Process, ruleset program.Cell) {
	if p.Landlock == nil {
		return
	}
	c.Because(p.Landlock.Rules[0].At, "enforce the Landlock ruleset")
	c.Call(unix.SYS_PRCTL, program.Int(unix.PR_SET_NO_NEW_PRIVS), program.Int(1), program.Int(0), program.Int(0), program.Int(0))
	c.Call(unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset.Value(), program.Int(0))
}
