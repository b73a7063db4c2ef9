//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Command containerd-shim-berth-v2 is the containerd Runtime v2 shim of Berth:
// the runtime name io.containerd.berth.v2, or io.containerd.runc.v2 with its
// path for the runtime's. See docs/containerd.md.
//
// Go's runtime would keep cgroup files open, and a timer running, to follow CPU
// limits that concern a shim little; the two settings below keep it from that.
package main

import (
	"fmt"
	"os"

	"github.com/berth-runtime/berth/shim/bootstrap"
	"github.com/berth-runtime/berth/shim/server"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "containerd-shim-berth-v2:", err)
		os.Exit(1)
	}
}

// help is for who finds the program and wonders. Its flags are containerd's to give.
const help = `The containerd Runtime v2 shim of Berth, with the engine in it. containerd starts it, by the name
io.containerd.berth.v2; there is nothing in it to be called by hand.

Usage: containerd-shim-berth-v2 -namespace NAME -id ID -address SOCKET start|delete
       containerd-shim-berth-v2 -version
       containerd-shim-berth-v2 -info < OPTIONS     what it can do, as containerd's runtime.v2 API has it

To have containerd use it, name it as runtime_type in its config.toml, or try it by
ctr run --runtime io.containerd.berth.v2 IMAGE ID.
`

func run(args []string) error {
	a, err := bootstrap.ParseArgs(args)
	if err != nil {
		return err
	}
	switch {
	case a.Version:
		fmt.Printf("containerd-shim-berth-v2 version %s\nrevision: %s\n", version, revision)
		return nil
	case a.Help:
		fmt.Print(help)
		return nil
	case a.Info:
		return bootstrap.Info(name, version, revision, transientEngine, os.Stdin, os.Stdout)
	case a.Command == "start":
		return bootstrap.Start(a, os.Stdin, os.Stdout)
	case a.Command == "delete":
		return bootstrap.Delete(a, transientEngine, os.Stdout)
	}
	return server.Run(a, server.Config{Version: version, Engine: openEngine})
}
