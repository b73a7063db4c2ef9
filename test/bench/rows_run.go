package main

import (
	"fmt"
	"path/filepath"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// runRows measure a whole `run /bin/true`.
func (b *bench) runRows() error {
	for _, name := range []string{"v1", "v2", "host"} {
		v := b.views[name]
		if v == nil {
			progress("run: this machine cannot show %s", name)
			continue
		}
		kinds := []kind{plain, filtered}
		if v.limits {
			kinds[1] = full
		}
		for _, k := range kinds {
			s := b.spec(k, "/bin/true")
			if v.name == "v2" {
				// crun raises RLIMIT_MEMLOCK to load a device program, which not every
				// machine allows.
				s.Linux.Resources.Devices = nil
			}
			dir, err := b.bundle("run-"+string(k)+"-"+v.name, s)
			if err != nil {
				return err
			}
			for _, pause := range []time.Duration{0, b.pause} {
				b.runRow(v, k, dir, s, pause)
			}
		}
	}
	return nil
}

func (b *bench) runRow(v *view, k kind, dir string, s *specs.Spec, pause time.Duration) {
	how := "warm"
	if pause > 0 {
		how = "isolated"
	}
	row := &Row{Group: "run", Name: fmt.Sprintf("run, %s, %s, cgroup %s", how, k, v.words), Unit: "ms"}
	switch {
	case v.name == "v2" && pause > 0:
		row.target(0.75, 0.22)
	case v.name == "v2":
		row.target(0.70, 0.22)
	case v.name == "v1" && pause > 0:
		row.target(0.33, 0.20)
	case v.name == "v1":
		row.target(0.75, 0.22)
	}
	if row.Target != nil && pause == 0 {
		row.Target[floorName] = 1.3
	}
	var contenders []contender
	for _, e := range b.enginesIn(v) {
		contenders = append(contenders, contender{e.name, func() (sample, error) {
			return b.time(e.command("run", "--bundle", dir, b.id()))
		}})
	}
	v.do(func() {
		if v.name != "host" { // the floor knows no mixture
			floor, err := b.floorOf(filepath.Base(dir), s)
			if err != nil {
				progress("%s: %v", floorName, err)
			} else if floor != nil {
				contenders = append(contenders, *floor)
			}
		}
		if pause > 0 {
			b.turns(row, pause, contenders)
		} else {
			b.bursts(row, contenders)
		}
	})
}

// enginesIn are those that work in a view: crun refuses a mixture.
func (b *bench) enginesIn(v *view) []engine {
	var able []engine
	for _, e := range b.engines {
		if v.name != "host" || e.name != "crun" {
			able = append(able, e)
		}
	}
	return able
}

// pureView is the one in which rows are measured that are not about cgroups: all
// contenders work there.
func (b *bench) pureView() *view {
	if v := b.views["v1"]; v != nil {
		return v
	}
	return b.views["v2"]
}

func (v *view) kind() kind {
	if v.limits {
		return full
	}
	return filtered
}
