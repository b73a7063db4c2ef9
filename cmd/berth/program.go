package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/cmd/internal/log"
	"github.com/berth-runtime/berth/engine/container"
	"github.com/berth-runtime/berth/engine/host"
	"github.com/berth-runtime/berth/internal/settings"
	"github.com/berth-runtime/berth/internal/trace"
)

// program is what the global options say.
type program struct {
	log           *log.Logger
	root          string
	rootGiven     bool
	logFile       string
	logFormat     string
	debug         bool
	systemdCgroup bool
	cgroupManager string
	rootless      string
	criu          string
	trace         *trace.Trace // nil unless --trace is given
	traceFile     string
	version       bool
	noSubreaper   bool
	inChroot      *chroot // set by a command that failed for it
	failing       int     // the exit status for a failure of our own
}

// warnOf tells of what has failed and is not the command's to fail for.
func (p *program) warnOf(err error) {
	if err != nil {
		p.log.Warn(err.Error())
	}
}

func newProgram() *program {
	return &program{log: log.New(), root: defaultRoot(), logFormat: "text", rootless: "auto", failing: 1}
}

// defaultRoot is where containers are kept: below /run, which a reboot empties
// as it ends the containers. Podman calls an ordinary user's runtime as root of a
// user namespace, with the user's own XDG_RUNTIME_DIR; /run is not theirs there.
// Where USER is root it is a whole system that runs in the namespace, and its own.
func defaultRoot() string {
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if dir != "" && (os.Geteuid() != 0 || os.Getenv("USER") != "root" && host.InUserNS()) {
		return filepath.Join(dir, "berth")
	}
	if os.Geteuid() != 0 {
		return filepath.Join(os.TempDir(), "berth-"+strconv.Itoa(os.Geteuid()))
	}
	return hostRoot
}

// hostRoot is where the root user's containers are, if the settings of the host say nothing else.
const hostRoot = "/run/berth"

func (p *program) command() *cli.Command {
	c := &cli.Command{
		Name:    "berth",
		Summary: "Run OCI containers, and explain what happens.",
		Help: "It is a drop-in for runc under Docker, Podman, containerd and CRI-O. A container is\n" +
			"created from a bundle: a directory with a config.json (OCI runtime specification 1.x)\n" +
			"and a root file system.",
		Examples: []string{
			"berth spec && berth run demo             # in a directory with a rootfs",
			"berth explain .                          # what run would do, without doing it",
		},
		Commands: p.commands,
	}
	f := &c.Flags
	f.Func("root", "", "DIR", "state directory of containers", func(dir string) error {
		p.root, p.rootGiven = dir, true
		return nil
	}).Default = p.root
	f.String(&p.logFile, "log", "", "FILE", "write messages to a file instead of standard error")
	f.String(&p.logFormat, "log-format", "", "text|json", "form of messages; text is plain lines on a terminal")
	f.Bool(&p.debug, "debug", "", "also log each step, the plan, what the host lacks, and tolerated failures")
	f.Bool(&p.systemdCgroup, "systemd-cgroup", "", "let systemd create the cgroups; cgroupsPath is slice:prefix:name")
	f.String(&p.rootless, "rootless", "", "true|false|auto", "run without a cgroup if it can't be created and no limits are set")
	f.String(&p.cgroupManager, "cgroup-manager", "", "cgroupfs|systemd|auto|disabled", "what creates cgroups; auto, the default (see berth.toml(5)), is systemd where it is the init system and cgroupsPath is not absolute; disabled creates none")
	f.Func("trace", "", "FILE", "record how long each step took: FILE.json for a timeline (for ui.perfetto.dev), FILE.svg for a picture, otherwise both", func(file string) error {
		if file == "" {
			return errors.New("it wants the name of a file, such as trace.json")
		}
		p.traceFile, p.trace = file, trace.New("berth "+strings.Join(os.Args[1:], " "))
		return nil
	})
	f.Bool(&p.version, "version", "v", "show the version")
	f.String(&p.criu, "criu", "", "PATH", "the criu to use for checkpoint and restore; else the one in PATH").Hidden = true
	f.Bool(&p.noSubreaper, "no-subreaper", "", "accepted for callers of old; berth never is a subreaper").Hidden = true
	c.Alone = func() bool { return p.version }
	c.Run = func([]string) error {
		if p.version {
			return p.printVersion()
		}
		c.WriteHelp(os.Stdout, "berth")
		return nil
	}
	return c
}

func (p *program) commands() []cli.Sub {
	return []cli.Sub{
		{Name: "box", Define: p.boxCommand}, {Name: "run", Define: p.runCommand}, {Name: "create", Define: p.createCommand},
		{Name: "start", Define: p.startCommand}, {Name: "exec", Define: p.execCommand},
		{Name: "state", Define: p.stateCommand}, {Name: "inspect", Define: p.inspectCommand}, {Name: "list", Also: []string{"ls"}, Define: p.listCommand},
		{Name: "top", Define: p.topCommand}, {Name: "ps", Define: p.psCommand}, {Name: "kill", Also: []string{"stop"}, Define: p.killCommand},
		{Name: "delete", Also: []string{"rm", "remove"}, Define: p.deleteCommand}, {Name: "gc", Also: []string{"prune"}, Define: p.gcCommand},
		{Name: "pause", Define: p.pauseCommand}, {Name: "resume", Also: []string{"unpause"}, Define: p.resumeCommand}, {Name: "update", Define: p.updateCommand},
		{Name: "events", Define: p.eventsCommand}, {Name: "checkpoint", Define: p.checkpointCommand}, {Name: "restore", Define: p.restoreCommand},
		{Name: "spec", Define: p.specCommand}, {Name: "explain", Define: p.explainCommand}, {Name: "seccomp", Define: p.seccompCommand},
		{Name: "features", Define: p.featuresCommand}, {Name: "doctor", Define: p.doctorCommand}, {Name: "version", Define: p.versionCommand},
		{Name: "completion", Define: p.completionCommand}, {Name: "man", Define: p.manCommand},
		{Name: "cgroup", Define: p.cgroupCommand},
	}
}

// runtime opens the log and returns the set of containers that is meant.
func (p *program) runtime() (*container.Runtime, error) {
	if err := p.log.Open(p.logFile, p.logFormat, p.debug); err != nil {
		return nil, err
	}
	s, err := p.settings()
	if err != nil {
		return nil, err
	}
	if p.root == "" {
		// Not the current directory, whatever is in it.
		return nil, errors.New("--root: it is empty (leave it out for " + defaultRoot() + ")")
	}
	root, err := filepath.Abs(p.root)
	if err != nil {
		return nil, fmt.Errorf("--root: %w", err)
	}
	if p.debug {
		if p.trace == nil {
			p.trace = trace.Telling(p.log.Debug)
		}
		p.trace.Tell = p.log.Debug
	}
	r := &container.Runtime{Root: root, Driver: s.Driver, Parent: s.Parent, Supervisor: "/proc/self/exe", LearnIn: s.Learn,
		Warn: p.log.Warn, Debug: p.log.Debug, Trace: p.trace}
	if p.debug {
		r.OnPlan = p.tellPlan
	}
	r.NoCgroup = p.cgroupManager == "disabled"
	switch p.rootless {
	case "auto":
		r.IgnoreCgroupErrors = container.Rootless
	case "true":
		r.IgnoreCgroupErrors = container.Everybody
	case "false":
	default:
		return nil, fmt.Errorf("--rootless %q: it is true, false or auto", p.rootless)
	}
	return r, nil
}

// settings are the host's, with what the options say instead.
func (p *program) settings() (settings.Settings, error) {
	s, err := settings.Read()
	if err != nil {
		return s, err
	}
	switch p.cgroupManager {
	case "", "disabled":
	case "cgroupfs", "systemd", "auto":
		s.Driver = settings.Driver(p.cgroupManager)
	default:
		return s, fmt.Errorf("--cgroup-manager %q: it is cgroupfs, systemd, auto or disabled", p.cgroupManager)
	}
	if p.systemdCgroup {
		s.Driver = settings.Systemd
	}
	if !p.rootGiven && s.Root != "" && p.root == hostRoot {
		p.root = s.Root
	}
	return s, nil
}

// load finds a container by its id.
func (p *program) load(id string) (*container.Container, error) {
	r, err := p.runtime()
	if err != nil {
		return nil, err
	}
	return r.Load(id)
}
