package main

import (
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/cmd/berth/internal/seccomptool"
	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/engine/container"
	"github.com/berth-runtime/berth/engine/supervisor"
	"github.com/berth-runtime/berth/internal/escape"
	"github.com/berth-runtime/berth/seccomp"
)

const denialsHelp = "name the system calls that the seccomp profile refuses"

// explainFlag is that of run and exec.
func explainFlag(f *cli.Flags, on *bool) {
	f.Bool(on, "explain-denials", "", denialsHelp+", at the end")
}

// explainDenials has the process's refused calls come to us. See docs/decisions/denials.md.
func explainDenials(io *container.IO) *supervisor.Denials {
	d := supervisor.NewDenials()
	io.Refusals = func(profile *specs.LinuxSeccomp, filter *seccomp.Filter, fd int, keep func(*container.Denial)) error {
		l, err := seccomp.Notify(fd)
		if err != nil {
			return err
		}
		d.Keep = keep
		go d.Serve(profile, filter, "/linux/seccomp", l)
		return nil
	}
	return d
}

// warnKilled tells what a profile kills for, where it may have killed the process.
func (p *program) warnKilled(c *container.Container, status unix.WaitStatus) {
	if !status.Signaled() || status.Signal() != unix.SIGSYS {
		return
	}
	s, err := c.Config()
	if err != nil || s.Linux == nil {
		return
	}
	p.log.Warn(escape.Message(seccomptool.Killed(s.Linux.Seccomp, "/linux/seccomp")))
}

// warnDenials tells of them.
func (p *program) warnDenials(d *supervisor.Denials) {
	if d == nil {
		return
	}
	for _, n := range d.All() {
		p.log.Warn("denied: " + escape.Message(n.String()))
	}
	if err := d.Err(); err != nil {
		p.log.Warn("not all refused system calls are known: " + escape.Message(err.Error()))
	}
}
