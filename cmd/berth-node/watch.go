package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"

	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/node/machine"
	"github.com/berth-runtime/berth/node/watch"
	"golang.org/x/sys/unix"
)

func watchCommand() *cli.Command {
	s := &settings{}
	return s.command("Apply the plan and keep it applied: the daemon.", `Applies the plan, and reverts changes made by others within a second or two: it listens to the
kernel and to systemd, and checks everything every recheck-interval. It reports what changed
and, if known, which process did it, to the journal. /metrics is for Prometheus; /healthz
returns 200 while the node is as planned, otherwise 503 with the reasons. SIGHUP rereads
the configuration; an invalid one is reported and not applied. When the daemon stops, all
settings stay in place; berth-node undo restores the node.`, []string{"berth-node watch --listen=127.0.0.1:9841", "systemctl enable --now berth-node"}, func(ctx context.Context) error {
		// Small and steady: it lives beside the workloads, on their memory.
		debug.SetGCPercent(40)
		debug.SetMemoryLimit(12 << 20)
		m, err := machine.Open()
		if err != nil {
			return err
		}
		hup := make(chan os.Signal, 1)
		signal.Notify(hup, unix.SIGHUP)
		d := &watch.Daemon{Machine: m, Load: s.load, Reload: hup, Out: os.Stderr, Getenv: os.Getenv}
		return d.Run(ctx)
	})
}
