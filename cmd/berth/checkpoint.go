package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/cmd/berth/internal/cgrouptool"
	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/cmd/internal/terminal"
	"github.com/berth-runtime/berth/engine/container"
	"github.com/berth-runtime/berth/engine/criu"
)

// defineCriu defines what checkpoint and restore have in common.
func (p *program) defineCriu(f *cli.Flags, o *container.CriuOptions) {
	o.Images = "checkpoint"
	f.String(&o.Images, "image-path", "", "DIR", "directory of the checkpoint")
	f.String(&o.Work, "work-path", "", "DIR", "directory for CRIU's log and temporary files (default: that of the checkpoint)")
	f.Bool(&o.TCPEstablished, "tcp-established", "", "keep open TCP connections")
	f.Bool(&o.TCPClose, "tcp-close", "", "close open TCP connections")
	f.Bool(&o.ExternalSockets, "ext-unix-sk", "", "allow unix sockets connected to the outside of the container")
	f.Bool(&o.ShellJob, "shell-job", "", "allow processes with a terminal outside of the container")
	f.Bool(&o.FileLocks, "file-locks", "", "keep file locks")
	f.Bool(&o.LinkRemap, "link-remap", "", "keep deleted files that are open, by relinking them")
	f.Bool(&o.LazyPages, "lazy-pages", "", "transfer memory on demand, with userfaultfd")
	f.Bool(&o.AutoDedup, "auto-dedup", "", "drop memory from parent images that newer ones contain")
	f.String(&o.CgroupMode, "manage-cgroups-mode", "", "soft|full|strict|ignore", "how criu keeps the cgroups (default: soft)")
	f.Strings(&o.EmptyNamespaces, "empty-ns", "", "TYPE", "omit the content of a namespace: network")
	f.String(&o.LSMProfile, "lsm-profile", "", "TYPE:NAME", "use another AppArmor profile or SELinux label")
	f.String(&o.LSMMountContext, "lsm-mount-context", "", "LABEL", "use another SELinux label for mounts")
}

func (p *program) checkpointCommand() *cli.Command {
	o := container.CheckpointOptions{StatusFD: -1}
	var server string
	c := &cli.Command{
		Args: "ID", Least: 1, Most: 1,
		Summary: "Checkpoint a container to files, and stop it.",
		Help: "Uses CRIU (Debian: apt install criu): criu 4.1 works on Linux 6.18, where 3.17 fails. restore\n" +
			"resumes the processes from the same bundle, on this machine or another one.",
		Examples: []string{"berth checkpoint --image-path /srv/demo.ckpt demo", "berth checkpoint --leave-running --image-path /srv/demo.ckpt demo"},
		Run: func(args []string) error {
			var err error
			if o.PageServer, err = pageServer(server); err != nil {
				return err
			}
			if err := p.criuPaths(&o.CriuOptions); err != nil {
				return err
			}
			c, err := p.load(args[0])
			if err != nil {
				return err
			}
			defer c.Close()
			progress := terminal.Show(func() string {
				return "criu writes " + args[0] + " down: " + cgrouptool.Size(sizeOf(o.Images))
			})
			defer progress.End()
			return c.Checkpoint(&o)
		},
	}
	f := &c.Flags
	p.defineCriu(f, &o.CriuOptions)
	f.String(&o.Parent, "parent-path", "", "DIR", "earlier checkpoint or pre-dump, relative to --image-path; only changes since then are saved")
	f.Bool(&o.LeaveRunning, "leave-running", "", "leave the container running")
	f.Bool(&o.PreDump, "pre-dump", "", "save only the memory, while the container keeps running")
	f.Bool(&o.TCPSkipInFlight, "tcp-skip-in-flight", "", "skip TCP connections that are still being established")
	f.String(&server, "page-server", "", "ADDRESS:PORT", "send the memory to this CRIU page server")
	f.Int(&o.StatusFD, "status-fd", "", "FD", "file descriptor that gets a zero byte when lazy pages can be fetched")
	return c
}

// sizeOf is what the files of a directory take together.
func sizeOf(folder string) (size uint64) {
	entries, _ := os.ReadDir(folder) // it is there once criu has begun
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			size += uint64(info.Size())
		}
	}
	return size
}

// pageServer reads an address and port.
func pageServer(text string) (*criu.PageServer, error) {
	if text == "" {
		return nil, nil
	}
	colon := strings.LastIndexByte(text, ':')
	port, err := strconv.ParseUint(text[colon+1:], 10, 16)
	if colon < 1 || err != nil {
		return nil, fmt.Errorf("--page-server %q: it is an address and a port, such as 192.0.2.1:9876", text)
	}
	return &criu.PageServer{Address: strings.Trim(text[:colon], "[]"), Port: int(port)}, nil
}

// criuPaths resolves paths by the current directory.
func (p *program) criuPaths(o *container.CriuOptions) error {
	o.Criu = p.criu
	for _, path := range []*string{&o.Images, &o.Work} {
		if *path == "" {
			continue
		}
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = absolute
	}
	return nil
}
