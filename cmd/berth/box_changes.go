package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/cmd/berth/internal/box/changes"
	"github.com/berth-runtime/berth/cmd/berth/internal/box/layer"
	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/cmd/internal/terminal"
	"github.com/berth-runtime/berth/engine/container"
	"github.com/berth-runtime/berth/internal/escape"
)

// boxChanges are the options on what a command changes, and what has come of them.
type boxChanges struct {
	diff, into string // the form, and the file that it goes to
	save       string // a file, or a directory
	on         string // an archive to start from
	apply      string // an archive to bring to the machine
	yes        bool

	scratch *container.Scratch
	filled  map[string]bool // that were there before the box was made
	made    map[string]bool // that its making has left
	diffTo  *os.File
	saveTo  *os.File // the archive, or nil for
	saveIn  *layer.Tree
	from    *os.File
}

func (c *boxChanges) define(f *cli.Flags) {
	f.Func("diff", "", "", "list what the command has added, modified and deleted, on standard error; =tree, =json, or =json:FILE to say how and where", func(text string) error {
		switch text {
		case "true":
			text = "text"
		case "false":
			text = ""
		}
		c.diff, c.into, _ = strings.Cut(text, ":")
		switch c.diff {
		case "", "text", "tree", "json":
			return nil
		}
		return fmt.Errorf("%q is none of text, tree and json", c.diff)
	})
	f.String(&c.save, "save", "", "FILE.tar|DIR", "keep what the command has changed, as a layer of an image")
	f.String(&c.on, "on", "", "FILE.tar", "start from what --save has kept")
	f.String(&c.apply, "apply", "", "FILE.tar", "bring what --save has kept to this machine (or to --rootfs); shows it and asks first; takes no COMMAND")
	f.Bool(&c.yes, "yes", "", "with --apply: don't ask")
}

// wanted reports whether what is written is looked at.
func (c *boxChanges) wanted() bool { return c.diff != "" || c.save != "" || c.on != "" }

// prepare opens what is to be written to in the end: what has the name by then may be the box's.
func (c *boxChanges) prepare() (err error) {
	if c.into != "" {
		if c.diffTo, err = openOutput(c.into, 0o644); err != nil {
			return fmt.Errorf("--diff: %w", err)
		}
	}
	if c.on != "" {
		if c.from, err = os.Open(c.on); err != nil {
			return fmt.Errorf("--on: %w", err)
		}
	}
	if c.save == "" {
		return nil
	}
	if info, err := os.Stat(c.save); strings.HasSuffix(c.save, "/") || err == nil && info.IsDir() {
		return c.saveInto()
	}
	if c.saveTo, err = openOutput(c.save, 0o600); err != nil {
		return fmt.Errorf("--save: %w", err)
	}
	return nil
}

const standardOutput = "standard output"

// openOutput opens a file to be written to; - is standard output.
func openOutput(name string, mode os.FileMode) (*os.File, error) {
	if name == "-" {
		fd, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return nil, os.NewSyscallError("fcntl", err)
		}
		return os.NewFile(uintptr(fd), standardOutput), nil
	}
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE, mode)
}

// replaceContents writes all that a file is to hold.
func replaceContents(f *os.File, write func(io.Writer) error) error {
	var err error
	if f.Name() != standardOutput { // which has what the command wrote
		err = f.Truncate(0)
	}
	if err == nil || errors.Is(err, unix.EINVAL) { // a pipe or a device has nothing to cut off
		out := bufio.NewWriterSize(f, 1<<16)
		if err = write(out); err == nil {
			err = out.Flush()
		}
	}
	return errors.Join(err, f.Close())
}

// saveInto takes an empty directory, for its owner only: what is kept may be setuid.
func (c *boxChanges) saveInto() error {
	if err := os.Mkdir(c.save, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("--save: %w", err)
	}
	names, err := os.ReadDir(c.save)
	if err == nil && len(names) > 0 {
		err = fmt.Errorf("%s is not empty", c.save)
	}
	if err == nil {
		c.saveIn, err = layer.Open(c.save)
	}
	if err != nil {
		return fmt.Errorf("--save: %w", err)
	}
	c.saveIn.Strict, c.saveIn.Literal, c.saveIn.Owners = true, true, os.Geteuid() == 0
	return nil
}

// take is given the memory for what is written, before the box is mounted.
func (c *boxChanges) take(s *container.Scratch) (err error) {
	c.scratch = s
	if c.from == nil {
		return nil
	}
	if err := changes.Fill(s, bufio.NewReaderSize(c.from, 1<<16)); err != nil {
		return fmt.Errorf("--on %s: %w", c.on, err)
	}
	c.filled, err = changes.Paths(s)
	return err
}

// begin looks at what the making of the box has left, before the command does anything.
func (c *boxChanges) begin() (err error) {
	if c.scratch == nil {
		return nil
	}
	c.made, err = changes.Paths(c.scratch)
	for name := range c.filled {
		delete(c.made, name)
	}
	return err
}

// tell shows and keeps what the command has changed.
func (c *boxChanges) tell() error {
	if c.scratch == nil || c.diff == "" && c.save == "" {
		return nil
	}
	set, err := changes.Of(c.scratch, c.made)
	if err != nil {
		return fmt.Errorf("what it has changed is not known: %w", err)
	}
	return errors.Join(c.show(set), c.keep(set))
}

func (c *boxChanges) show(set *changes.Set) error {
	var text []byte
	switch c.diff {
	case "":
		return nil
	case "json":
		text = set.JSON()
	case "tree":
		text = []byte(set.Tree())
	default:
		text = []byte(set.Text())
	}
	if c.diffTo == nil {
		_, err := os.Stderr.Write(text)
		return err
	}
	file := c.diffTo
	c.diffTo = nil
	if err := replaceContents(file, func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
		return fmt.Errorf("--diff: %w", err)
	}
	return nil
}

func (c *boxChanges) keep(set *changes.Set) (err error) {
	if c.save == "" {
		return nil
	}
	skipped := 0
	if c.saveIn != nil {
		r, w := io.Pipe()
		go func() {
			n, err := set.Save(c.scratch, w)
			skipped = n
			w.CloseWithError(err)
		}()
		err = c.saveIn.Apply(r)
		r.CloseWithError(err)
		err = errors.Join(err, c.saveIn.Finish())
	} else {
		file := c.saveTo
		c.saveTo = nil
		err = replaceContents(file, func(w io.Writer) error { skipped, err = set.Save(c.scratch, w); return err })
	}
	if err != nil {
		return fmt.Errorf("--save %s: %w", c.save, err)
	}
	if skipped > 0 {
		fmt.Fprintf(os.Stderr, "berth box: --save leaves out %d sockets or device nodes\n", skipped)
	}
	return nil
}

func (c *boxChanges) close() {
	for _, f := range []*os.File{c.diffTo, c.saveTo, c.from} {
		if f != nil {
			f.Close()
		}
	}
	if c.saveIn != nil {
		c.saveIn.Close()
	}
	if c.scratch != nil {
		c.scratch.Close()
	}
}

// applyChanges brings what was kept of a box to the machine.
func (p *program) applyChanges(o *boxOptions, args []string) error {
	fail := func(err error) error {
		return &exitStatus{code: noBox, plain: true, err: fmt.Errorf("berth box: --apply %s: %w", o.changes.apply, err)}
	}
	if len(args) > 0 || o.changes.wanted() || o.image.name != "" {
		return fail(errors.New("it runs no command, and takes no other option but --rootfs and --yes"))
	}
	root := "/"
	if o.Rootfs != "" {
		root = o.Rootfs
	}
	file, err := os.Open(o.changes.apply)
	if err != nil {
		return fail(err)
	}
	defer func() { file.Close() }()
	if file, err = steady(file); err != nil {
		return fail(err)
	}
	set, err := changes.OfArchive(file, root)
	if err != nil {
		return fail(err)
	}
	fmt.Print(set.Text())
	if len(set.List) == 0 {
		return nil
	}
	if !o.changes.yes {
		if err := confirm("Make these changes to " + escape.Line(root) + "? [y/N] "); err != nil {
			return fail(err)
		}
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return fail(err)
	}
	tree, err := layer.Open(root)
	if err != nil {
		return fail(err)
	}
	defer tree.Close()
	tree.Strict, tree.Owners = true, os.Geteuid() == 0
	if err := errors.Join(tree.Apply(file), tree.Finish()); err != nil {
		return fail(fmt.Errorf("stopped half-way: %w", err))
	}
	if tree.Skipped > 0 {
		fmt.Fprintf(os.Stderr, "berth box: --apply leaves out %d device nodes\n", tree.Skipped)
	}
	return nil
}

// steady makes sure that an archive stays as it is shown until it is applied: of a file that
// another user can write to, and of a pipe, it takes a copy.
func steady(file *os.File) (*os.File, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		return file, os.NewSyscallError("fstat", err)
	}
	if st.Mode&unix.S_IFMT == unix.S_IFREG && st.Mode&0o022 == 0 && (st.Uid == 0 || int(st.Uid) == os.Geteuid()) {
		return file, nil
	}
	copied, err := os.CreateTemp("", "berth-box-*.tar")
	if err != nil {
		return file, err
	}
	if err = os.Remove(copied.Name()); err == nil {
		_, err = io.Copy(copied, file)
	}
	if err == nil {
		_, err = copied.Seek(0, io.SeekStart)
	}
	if err != nil {
		copied.Close()
		return file, fmt.Errorf("copy what another user can write to: %w", err)
	}
	file.Close()
	return copied, nil
}

// confirm asks on the terminal.
func confirm(question string) error {
	if !terminal.IsTerminal(0) {
		return errors.New("it asks before it changes anything, and there is no terminal to ask on: pass --yes")
	}
	fmt.Print(question)
	answer, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil && err != io.EOF {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errors.New("nothing was changed")
}
