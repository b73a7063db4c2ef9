package main

import (
	"fmt"
	"os"

	"github.com/berth-runtime/berth/engine/container"
	"github.com/berth-runtime/berth/engine/supervisor"
	"github.com/berth-runtime/berth/shim/bootstrap"
	"github.com/berth-runtime/berth/shim/engine/choose"
	"github.com/berth-runtime/berth/shim/server"
)

func main() {
	if os.Args[0] == container.SupervisorName {
		os.Exit(supervisor.Process(os.Args[1:]))
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "containerd-shim-berth-v2:", err)
		os.Exit(1)
	}
}

const help = `The containerd Runtime v2 shim of Berth, with the engine in it. containerd starts it, by the name
io.containerd.berth.v2; all there is to be called by hand is upgrade.

Usage: containerd-shim-berth-v2 -namespace NAME -id ID -address SOCKET start|delete
       containerd-shim-berth-v2 [-namespace NAME] [-address SOCKET] [-in-place] -id ID | -all upgrade
       containerd-shim-berth-v2 -version
       containerd-shim-berth-v2 -info < OPTIONS     what it can do, as containerd's runtime.v2 API has it

upgrade has running shims, the one of container ID or all (of a namespace, of one containerd), replaced by this
program while their containers run on and containerd sees nothing of it; with -in-place each takes the program that
is now where its own was, as it does when it gets a SIGHUP. A shim that cannot be replaced stays as it is.

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
		return bootstrap.Info(name, version, revision, choose.Transient, os.Stdin, os.Stdout)
	case a.Command == "start":
		return bootstrap.Start(a, os.Stdin, os.Stdout)
	case a.Command == "delete":
		return bootstrap.Delete(a, choose.Transient, os.Stdout)
	case a.Command == "upgrade":
		return bootstrap.Upgrade(a, os.Stdout)
	case a.CheckState:
		return server.CheckState(os.Stdin, os.Stdout)
	}
	return server.Run(a, server.Config{Version: version, Engine: choose.Engine})
}
