package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/cmd/internal/terminal"
	"github.com/berth-runtime/berth/internal/escape"
	"github.com/berth-runtime/berth/node/agree"
	"github.com/berth-runtime/berth/node/config"
	"github.com/berth-runtime/berth/node/enforce"
	"github.com/berth-runtime/berth/node/enforce/record"
	"github.com/berth-runtime/berth/node/machine"
	"github.com/berth-runtime/berth/node/machine/usage"
	"github.com/berth-runtime/berth/node/plan"
	"github.com/berth-runtime/berth/node/show"
	"golang.org/x/sys/unix"
)

func command() *cli.Command {
	return &cli.Command{
		Name:    "berth-node",
		Summary: "Divide a node between system daemons, Kubernetes and workloads, and enforce it.",
		Help: `Reserves CPU, memory, pids, huge pages and storage for the host's and Kubernetes' daemons,
leaves the rest to the workloads, and sets limits on their slices or cgroups. The
configuration is ` + config.DefaultFile + `, or the file given with --config. Every key
in it is also an option, and options override the file.`,
		Commands: func() []cli.Sub {
			return []cli.Sub{
				{Name: "plan", Define: planCommand}, {Name: "apply", Define: applyCommand}, {Name: "status", Define: statusCommand},
				{Name: "watch", Define: watchCommand}, {Name: "undo", Define: undoCommand},
				{Name: "doctor", Define: doctorCommand}, {Name: "kubelet-config", Define: kubeletConfigCommand},
				{Name: "completion", Define: completionCommand}, {Name: "man", Define: manCommand},
			}
		},
	}
}

// settings are the options that every command has: all keys of the configuration.
type settings struct {
	file      string
	overrides []config.Override
}

func (s *settings) flags() cli.Flags {
	var f cli.Flags
	f.String(&s.file, "config", "c", "FILE", "read the configuration from FILE (default "+config.DefaultFile+", which may be missing)")
	for _, k := range config.Keys() {
		flag := f.Func(k.Name, "", k.Value, k.Help, func(v string) error {
			s.overrides = append(s.overrides, config.Override{Key: k.Name, Value: v})
			return nil
		})
		flag.Default = k.Default
	}
	return f
}

// command is one that has all settings, and may be interrupted.
func (s *settings) command(summary, help string, examples []string, run func(context.Context) error) *cli.Command {
	return &cli.Command{
		Summary: summary, Help: help, Examples: examples, Flags: s.flags(),
		Run: func([]string) error {
			ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
			defer stop()
			return run(ctx)
		},
	}
}

func (s *settings) load() (*config.Config, error) { return config.Load(s.file, s.overrides) }

// look gives the machine and the plan for it.
func (s *settings) look(ctx context.Context) (*machine.Machine, *plan.Plan, error) {
	c, err := s.load()
	if err != nil {
		return nil, nil, err
	}
	m, err := machine.Open()
	if err != nil {
		return nil, nil, err
	}
	p, err := m.Prepare(ctx, c)
	return m, p, err
}

func style() show.Style {
	s := terminal.ScreenOf(os.Stdout, os.Getenv)
	return show.Style{Width: s.Width, Color: s.Color, Unicode: s.Unicode}
}

func planCommand() *cli.Command {
	s := &settings{}
	var asJSON bool
	c := s.command("Show what would be done, without changing anything.", `Shows the capacity, each reservation and what it leaves, the resulting hierarchy, each setting
that would change with the configuration entry that asks for it, and any problem that prevents
the plan from being applied. In that case the exit status is 1.`, []string{"berth-node plan", "berth-node plan --system-reserved=cpu=500m,memory=1Gi --pods-enforce", "berth-node plan --config node.yaml --json"}, func(ctx context.Context) error {
		_, p, err := s.look(ctx)
		if err != nil {
			return err
		}
		if asJSON {
			text, err := show.PlanJSON(p)
			if err != nil {
				return err
			}
			os.Stdout.Write(text)
		} else {
			fmt.Print(style().Plan(p))
		}
		if len(p.Problems) > 0 {
			return fmt.Errorf("the plan has %d problems that keep it from being applied", len(p.Problems))
		}
		return nil
	})
	c.Flags.Bool(&asJSON, "json", "", "write JSON")
	return c
}

// engine takes the record for a command.
func engine(m *machine.Machine, dir string) (*enforce.Engine, func(), error) {
	r, err := record.Open(dir, m.BootID())
	if err != nil {
		return nil, nil, err
	}
	e := &enforce.Engine{Machine: m, Record: r, Say: func(text string) { fmt.Println(text) }}
	return e, func() { r.Close() }, nil
}

func applyCommand() *cli.Command {
	s := &settings{}
	return s.command("Apply the plan, once.", `Each setting is recorded with its previous value, so undo can restore it. Settings from an
earlier configuration that this one does not have are restored. If a memory limit is below
current usage, memory is reclaimed first; if that does not succeed within reclaim-deadline,
or raises the pressure above reclaim-pressure, the previous limit stays.`, []string{"berth-node apply", "berth-node apply --system-reserved=memory=1Gi --system-reserved-enforce"}, func(ctx context.Context) error {
		m, p, err := s.look(ctx)
		if err != nil {
			return err
		}
		e, done, err := engine(m, p.Config.StateDir)
		if err != nil {
			return err
		}
		defer done()
		if err := e.Apply(ctx, p); err != nil {
			return err
		}
		for _, w := range p.Warnings {
			fmt.Fprintln(os.Stderr, "warning: "+escape.Message(w))
		}
		for _, d := range agree.Compare(m.Root, p).Differences {
			// What was to be applied just now, and berth's settings with it, is not news.
			if d.Who != "berth-node" && d.Who != "berth" {
				fmt.Fprintln(os.Stderr, "warning: "+escape.Message(d.String()))
			}
		}
		return nil
	})
}

func undoCommand() *cli.Command {
	s := &settings{}
	return s.command("Restore the node's settings from before apply or watch.", `Restores everything in the record: properties with their drop-ins, files, kernel parameters,
OOM scores. Slices and cgroups that were created are removed if they are empty. Stop a
running daemon first.`, []string{"systemctl stop berth-node && berth-node undo"}, func(ctx context.Context) error {
		conf, err := s.load()
		if err != nil {
			return err
		}
		m, err := machine.Open()
		if err != nil {
			return err
		}
		e, done, err := engine(m, conf.StateDir)
		if err != nil {
			return err
		}
		defer done()
		if err := e.Undo(ctx); err != nil {
			return err
		}
		return e.Record.Clear()
	})
}

func statusCommand() *cli.Command {
	s := &settings{}
	var asJSON bool
	var html string
	c := s.command("Show what is reserved, used and left.", `Shows a table of the node's parts with their usage, bars for each resource, the workloads by
QoS level (summed over running pods and containers), all containers of the node whatever made
them, the daemons with the reservation they count towards, where the kubelet, containerd,
Docker and berth are configured differently, and warnings. It changes nothing, and takes half a second to measure CPU usage.`, []string{"berth-node status", "berth-node status --html node.html"}, func(ctx context.Context) error {
		m, p, err := s.look(ctx)
		if err != nil {
			return err
		}
		n, err := measure(ctx, m, p)
		if err != nil {
			return err
		}
		switch {
		case html == "-":
			os.Stdout.Write(show.HTML(n, time.Now()))
		case html != "":
			if err := os.WriteFile(html, show.HTML(n, time.Now()), 0o644); err != nil {
				return fmt.Errorf("--html: %w", err)
			}
		case asJSON:
			text, err := show.StatusJSON(n)
			if err != nil {
				return err
			}
			os.Stdout.Write(text)
		default:
			fmt.Print(style().Status(n))
		}
		return nil
	})
	c.Flags.Bool(&asJSON, "json", "", "write JSON")
	c.Flags.String(&html, "html", "", "FILE", "write a self-contained HTML page to FILE (- for standard output)")
	return c
}

// measure looks twice, for what is used of the processors.
func measure(ctx context.Context, m *machine.Machine, p *plan.Plan) (*show.Node, error) {
	r, err := record.Read(p.Config.StateDir, m.BootID())
	if err != nil {
		return nil, err
	}
	n := &show.Node{Plan: p, Applied: len(r.Changes), Agreement: agree.Compare(m.Root, p), Before: usage.Processors(m, p)}
	began := time.Now()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(500 * time.Millisecond):
	}
	n.Now, n.Seconds = usage.Measure(m, p), time.Since(began).Seconds()
	return n, nil
}
