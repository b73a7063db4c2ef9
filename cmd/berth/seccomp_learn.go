package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/cmd/berth/internal/seccomptool"
	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/engine/spec"
	"github.com/berth-runtime/berth/engine/supervisor"
	"github.com/berth-runtime/berth/internal/escape"
	"github.com/berth-runtime/berth/seccomp"
)

// learnOptions are the options of seccomp learn.
type learnOptions struct {
	output, merge           string
	args, kubernetes, check bool
}

func (p *program) seccompLearnCommand() *cli.Command {
	var o learnOptions
	c := &cli.Command{
		Args: "COMMAND [ARG...]", Least: 1, Most: -1, FirstEnds: true,
		Summary: "Record the system calls of a command, and write a profile that allows no others.",
		Help: "All threads and children are recorded, by notification: no root, no BPF and no tracer is needed.\n" +
			"An ordinary user's command runs with no_new_privs, so that setuid programs give no rights.\n" +
			"\n" +
			"The profile has what this run called. Merge runs that do other things, and check the result.\n" +
			"Without -o the profile goes to standard output, and the command's output to standard error.\n" +
			"The exit status is the command's; with --check, 1 if the second run needed more.\n" +
			ownStatus,
		Examples: []string{
			"berth seccomp learn -o p.json -- make test",
			"berth seccomp learn --merge p.json -o p.json --check -- ./server --self-test",
			"berth box --seccomp p.json -- make test",
		},
		Run: func(args []string) error { return p.seccompLearn(&o, args) },
	}
	f := &c.Flags
	f.String(&o.output, "output", "o", "FILE", "write the profile to this file")
	f.String(&o.merge, "merge", "", "FILE", "also allow what this profile allows; it may be the output, which need not exist yet")
	f.Bool(&o.args, "args", "", "also keep to the arguments that matter: namespaces, socket families, prctl and ioctl operations")
	f.Bool(&o.kubernetes, "kubernetes", "", "write a SeccompProfile object of the Security Profiles Operator")
	f.Bool(&o.check, "check", "", "run the command a second time, under the profile, and name what is refused")
	return p.attended(c)
}

func (p *program) seccompLearn(o *learnOptions, args []string) error {
	path, err := exec.LookPath(args[0])
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return cannotRun(args[0], err)
	}
	base, err := o.base()
	if err != nil {
		return err
	}
	filter, err := supervisor.Filter()
	if err != nil {
		return err
	}
	debug.SetGCPercent(100) // each call is some garbage
	record := supervisor.NewRecord(o.args)
	status, err := p.supervise(path, args, o.stdout(), filter, record.Serve, record.Ended())
	if err != nil {
		return err
	}
	if err := record.Err(); err != nil {
		return fmt.Errorf("the recording is not complete: %w", err)
	}
	profile, err := record.Profile(base)
	if err != nil {
		return fmt.Errorf("--merge %s: %w", o.merge, err)
	}
	if err := o.write(profile, args[0]); err != nil {
		return err
	}
	said := fmt.Sprintf("berth seccomp learn: %d different system calls", record.Calls())
	if !o.check {
		said += "; --check runs the command again under the profile"
	}
	fmt.Fprintln(os.Stderr, said)
	if o.check && exitCode(status) == 0 {
		return p.checkProfile(o, profile, path, args)
	}
	return ended(status)
}

// ended passes the command's exit status on.
func ended(status unix.WaitStatus) error {
	if code := exitCode(status); code != 0 {
		return &exitStatus{code: code}
	}
	return nil
}

// stdout is where the command writes to.
func (o *learnOptions) stdout() uintptr {
	if o.output == "" || o.output == "-" {
		return 2
	}
	return 1
}

func (o *learnOptions) base() (*specs.LinuxSeccomp, error) {
	if o.merge == "" {
		return nil, nil
	}
	profile, err := readProfile(o.merge, os.Stdin)
	if errors.Is(err, fs.ErrNotExist) && o.merge == o.output {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("--merge: %w", err)
	}
	return profile, nil
}

func (o *learnOptions) write(profile *specs.LinuxSeccomp, command string) error {
	data := spec.FormatSeccomp(profile)
	if o.kubernetes {
		data = seccomptool.Kubernetes(profile, objectName(o.output, command))
	}
	if o.stdout() == 2 {
		_, err := os.Stdout.Write(data)
		return err
	}
	return os.WriteFile(o.output, data, 0o644)
}

// objectName is a name that Kubernetes takes (RFC 1123), of the file or the command.
func objectName(file, command string) string {
	name := filepath.Base(command)
	if file != "" && file != "-" {
		name = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	}
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	if len(words) == 0 {
		return "learned"
	}
	return strings.Join(words, "-")
}

// supervise runs a command until none of its processes is left under the filter, or a signal asks
// us not to wait for those.
func (p *program) supervise(path string, args []string, stdout uintptr, filter *seccomp.Filter,
	serve func(*seccomp.Listener), gone <-chan struct{}) (unix.WaitStatus, error) {
	front, err := p.newForeground()
	if err != nil {
		return 0, err
	}
	defer front.close()
	front.beside, front.confine = true, func() {}
	s, err := seccomptool.Start(path, args, stdout, filter, serve)
	if err != nil {
		return 0, &exitStatus{code: boxStatus(err), err: fmt.Errorf("run %s: %w", args[0], err)}
	}
	defer s.Listener.Close()
	status, err := front.wait(s.Child)
	if err != nil {
		return 0, err
	}
	return status, front.await(gone, func() {
		fmt.Fprintln(os.Stderr, "berth seccomp learn:", escape.Message(args[0]),
			"has ended; still recording the processes that it left (Ctrl-C ends that, and their calls then fail)")
	})
}

// checkProfile runs the command under what was learned.
func (p *program) checkProfile(o *learnOptions, profile *specs.LinuxSeccomp, path string, args []string) error {
	filter, err := seccomp.Compile(profile)
	if err != nil {
		return err
	}
	watched, err := filter.Watched()
	if err != nil {
		return err
	}
	denials := supervisor.NewDenials()
	serve := func(l *seccomp.Listener) { denials.Serve(profile, filter, "", l) }
	fmt.Fprintln(os.Stderr, "berth seccomp learn: running it again under the profile")
	status, err := p.supervise(path, args, o.stdout(), watched, serve, denials.Ended())
	if err == nil {
		err = denials.Err()
	}
	if err != nil {
		return err
	}
	missed := 0
	for _, n := range denials.All() {
		if n.Call == "clone3" && n.Errno == "ENOSYS" {
			continue // C libraries take clone then, which is what the profile wants of them
		}
		missed++
		fmt.Fprintln(os.Stderr, "denied:", escape.Message(n.String()))
	}
	if missed > 0 {
		return &exitStatus{code: 1, plain: true, err: errors.New("berth seccomp learn: the second run did other things than the first: run it again with --merge")}
	}
	return ended(status)
}

func (p *program) seccompDiffCommand() *cli.Command {
	var o seccompOptions
	c := &cli.Command{
		Args: "A B", Least: 2, Most: 2,
		Summary:  "Show which system calls two profiles treat differently.",
		Help:     profileHelp + "\nThe exit status is 1 if they differ.",
		Examples: []string{"berth seccomp diff default p.json"},
	}
	o.define(&c.Flags)
	c.Run = func(args []string) error {
		native, first, err := o.read(args[0])
		if err != nil {
			return err
		}
		_, other, err := o.read(args[1])
		if err != nil {
			return err
		}
		list, err := seccomptool.Diff(native, first, other)
		if err != nil {
			return err
		}
		if err := o.write(list); err != nil {
			return err
		}
		if len(list) > 0 {
			return &exitStatus{code: 1}
		}
		return nil
	}
	return c
}
