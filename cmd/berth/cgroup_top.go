package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/berth-runtime/berth/cmd/berth/internal/cgrouptool"
	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/cmd/internal/terminal"
	"github.com/berth-runtime/berth/internal/json"
	"golang.org/x/sys/unix"
)

// topOptions are what a top command was asked for.
type topOptions struct {
	targets targetFlags
	order   cgrouptool.Order
	every   time.Duration
	times   int // -1 is not said
	depth   int
	batch   bool
	json    bool
}

func (p *program) cgroupTop() *cli.Command {
	o := &topOptions{order: cgrouptool.ByCPU, every: time.Second, times: -1, depth: 3}
	c := &cli.Command{
		Args: "[CGROUP]", Most: 1,
		Summary: "Show the resource usage of cgroups, live.",
		Help: "%CPU is of one processor. Bars show the share of all processors, and of the memory limit (the\n" +
			"machine's memory if there is none). P.CPU, P.MEM and P.IO are pressure (PSI): the percentage of\n" +
			"the last ten seconds in which some task waited. Keys: c, m, i, t, p sort, + and - change the\n" +
			"interval, space refreshes, q quits. If the output is not a terminal, it prints one sample as\n" +
			"plain lines, or -n of them.",
		Examples: []string{"berth cgroup top -m", "berth cgroup top -n 5 -d 10 --json > usage"},
	}
	o.define(&c.Flags)
	c.Run = func(args []string) error {
		tools, target, err := p.cgroupToShow(&o.targets, args)
		if err != nil {
			return err
		}
		debug.SetGCPercent(100) // this may last
		return o.run(tools.NewMeter(target, o.depth), tools.Ranking(o.order, runtime.NumCPU()))
	}
	return c
}

func (o *topOptions) define(f *cli.Flags) {
	o.targets.define(f)
	o.defineView(f)
	depthFlag(f, &o.depth)
}

func (o *topOptions) defineView(f *cli.Flags) {
	for _, order := range []cgrouptool.Order{cgrouptool.ByCPU, cgrouptool.ByMemory, cgrouptool.ByIO, cgrouptool.ByTasks, cgrouptool.ByPath} {
		f.Func("by-"+order.String(), string(byte(order)), "", "sort by "+order.String(), func(string) error {
			o.order = order
			return nil
		})
	}
	f.Func("delay", "d", "SECONDS", "seconds between samples (default 1)", func(text string) error {
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil || seconds < 0.1 || seconds > 86400 {
			return fmt.Errorf("%q is not a time from 0.1 to 86400 seconds", text)
		}
		o.every = time.Duration(seconds * float64(time.Second))
		return nil
	})
	f.Func("iterations", "n", "N", "stop after this many samples; 0 means never", func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return fmt.Errorf("%q is not a number of rounds", text)
		}
		o.times = n
		return nil
	})
	f.Bool(&o.batch, "batch", "b", "plain lines, even on a terminal")
	f.Bool(&o.json, "json", "", "write a line of JSON for each sample")
}

func (o *topOptions) run(meter *cgrouptool.Meter, ranking cgrouptool.Ranking) error {
	style := cgrouptool.StyleFor(os.Stdout, os.Getenv)
	if !o.batch && !o.json && terminal.IsTerminal(0) && terminal.IsTerminal(1) {
		live := cgrouptool.Live{Meter: meter, Ranking: ranking, Style: style, Every: o.every, Times: max(o.times, 0)}
		return live.Run(os.Stdin, os.Stdout)
	}
	if o.times < 0 {
		o.times = 1
	}
	style.Height = 0
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM)
	ticks := time.NewTicker(o.every)
	defer ticks.Stop()
	// Rates take two looks; the first is not shown.
	if _, err := meter.Sample(); err != nil {
		return err
	}
	for round := 0; o.times == 0 || round < o.times; round++ {
		select {
		case <-ticks.C:
		case <-signals:
			return nil
		}
		rows, err := meter.Sample()
		if err != nil {
			return err
		}
		meter.AddPressure(rows)
		cgrouptool.Sort(rows, o.order)
		if err := o.print(rows, style, ranking, round); err != nil {
			return err
		}
	}
	return nil
}

func (o *topOptions) print(rows []cgrouptool.Row, style cgrouptool.Style, ranking cgrouptool.Ranking, round int) error {
	var b strings.Builder
	switch {
	case o.json:
		w := json.NewWriter(nil, "")
		w.Array()
		for i := range rows {
			rows[i].JSON(w)
		}
		w.End()
		b.Write(append(w.Bytes(), '\n'))
	case round > 0:
		b.WriteByte('\n')
		fallthrough
	default:
		b.WriteString(style.Rank(rows, ranking))
	}
	_, err := os.Stdout.WriteString(b.String())
	return err
}
