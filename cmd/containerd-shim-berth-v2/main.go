package main

import (
	"fmt"
	"os"

	"github.com/berth-runtime/berth/shim/bootstrap"
	"github.com/berth-runtime/berth/shim/engine/choose"
	"github.com/berth-runtime/berth/shim/server"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "containerd-shim-berth-v2:", err)
		os.Exit(1)
	}
}

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
		return bootstrap.Info(name, version, revision, choose.Transient, os.Stdin, os.Stdout)
	case a.Command == "start":
		return bootstrap.Start(a, os.Stdin, os.Stdout)
	case a.Command == "delete":
		return bootstrap.Delete(a, choose.Transient, os.Stdout)
	}
	return server.Run(a, server.Config{Version: version, Engine: choose.Engine})
}
