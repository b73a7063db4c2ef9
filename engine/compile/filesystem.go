package compile

import (
	"strings"

	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/program"
	"golang.org/x/sys/unix"
)

// A context is a file system in the making, or one to be changed (fsopen(2), fspick(2)).
type context struct {
	fd      program.Cell
	errno   program.Cell
	refused program.Label
}

// context makes room for a context. Where the kernel refuses an option, its reasons are
// read from the context's descriptor and told, before the call's failure is.
func (c *compiler) context() context {
	fs := context{fd: c.Cell()}
	c.refusal(&fs)
	return fs
}

func (c *compiler) refusal(fs *context) {
	fs.errno, fs.refused = c.Cell(), c.NewLabel()
	if c.reasons == (program.Addr{}) {
		c.reasons = c.Bytes(program.ReasonsRecord())
	}
	note, errno, refused, fd := c.Note(), fs.errno, fs.refused, fs.fd
	c.later = append(c.later, func() {
		c.Place(refused)
		c.Because(note.Pointer, note.Text)
		next := c.NewLabel()
		for i := range program.MaxReasons {
			// EMSGSIZE of a longer one, ENODATA where there are no more.
			c.Call(unix.SYS_READ, fd.Value(), c.reasons.Plus(program.ReasonsHead+i*program.ReasonLen).Arg(), program.Int(program.ReasonLen)).ExpectAny(next)
		}
		c.Place(next)
		c.tellAll(c.reasons, program.ReasonsHead+program.MaxReasons*program.ReasonLen)
		c.Call(program.Set, errno.Value())
	})
}

// newFileSystem makes a file system and a detached mount of it.
func (c *compiler) newFileSystem(m *plan.Mount, attributes uint64) program.Cell {
	fs, tree := c.context(), c.Cell()
	c.Call(unix.SYS_FSOPEN, c.CString(m.Type).Arg(), program.Int(unix.FSOPEN_CLOEXEC)).Into(fs.fd)
	if m.Source != "" {
		c.fsString(fs, "source", m.Source)
	}
	if c.p.Label != "" && labelled(m) {
		note := c.Note()
		c.Because("/linux/mountLabel", "label the file system on "+m.Destination+" "+quote(c.p.Label))
		labelling := context{fd: fs.fd}
		c.refusal(&labelling)
		c.fsString(labelling, "context", c.p.Label)
		c.Because(note.Pointer, note.Text)
	}
	if m.Type == "proc" {
		c.choosePids(fs)
	}
	c.params(fs, m.Params)
	if m.ReadOnly() && onDevice(m.Type) {
		// A read-only device can't be opened for writing at all, so the super block
		// must be read-only as well.
		c.fsconfig(fs, unix.FSCONFIG_SET_FLAG, c.CString("ro").Arg(), program.Int(0))
	}
	c.fsconfig(fs, unix.FSCONFIG_CMD_CREATE, program.Int(0), program.Int(0))
	c.Call(unix.SYS_FSMOUNT, fs.fd.Value(), program.Int(unix.FSMOUNT_CLOEXEC), program.Imm(attributes)).Into(tree)
	c.close(fs.fd)
	return tree
}

// choosePids makes a procfs that of the pid namespace which our child will be in. The
// kernel takes the one that its maker is in, and we stay outside.
func (c *compiler) choosePids(fs context) {
	if !c.late {
		return
	}
	for _, j := range c.f.Joins {
		if j.Flag == unix.CLONE_NEWPID {
			c.Call(unix.SYS_FSCONFIG, fs.fd.Value(), program.Int(unix.FSCONFIG_SET_FD), c.CString("pidns").Arg(), program.Int(0), program.Int(int64(j.FD))).
				Into(fs.errno).KeepErrno().ExpectAny(fs.refused)
		}
	}
}

// params hands a file system its own options.
func (c *compiler) params(fs context, params []string) {
	for _, param := range params {
		if key, value, ok := strings.Cut(param, "="); ok {
			c.fsString(fs, key, value)
		} else {
			c.fsconfig(fs, unix.FSCONFIG_SET_FLAG, c.CString(param).Arg(), program.Int(0))
		}
	}
}

func (c *compiler) fsString(fs context, key, value string) {
	switch key {
	case "context", "fscontext", "defcontext", "rootcontext":
		// Quoted for the commas in them; mount(2) takes the quotes away, fsconfig(2)
		// takes a value as it is.
		value = strings.ReplaceAll(value, `"`, "")
	}
	c.fsconfig(fs, unix.FSCONFIG_SET_STRING, c.CString(key).Arg(), c.CString(value).Arg())
}

func (c *compiler) fsconfig(fs context, command int64, key, value program.Arg) {
	c.Call(unix.SYS_FSCONFIG, fs.fd.Value(), program.Int(command), key, value, program.Int(0)).
		Into(fs.errno).KeepErrno().ExpectAny(fs.refused)
}

// labelled says whether a file system takes an SELinux context when it is mounted.
func labelled(m *plan.Mount) bool {
	switch m.Type {
	case "proc", "sysfs", "cgroup", "cgroup2":
		return false // labelled by policy (genfscon)
	}
	for _, p := range m.Params {
		if strings.HasPrefix(p, "context=") {
			return false
		}
	}
	return true
}

// onDevice says whether a file system may live on a device of its own.
func onDevice(fs string) bool {
	switch fs {
	case "proc", "sysfs", "tmpfs", "devpts", "mqueue", "cgroup", "cgroup2", "ramfs", "hugetlbfs", "securityfs", "debugfs", "tracefs", "bpf", "fusectl", "configfs":
		return false
	}
	return true
}
