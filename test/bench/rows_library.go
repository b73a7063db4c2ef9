package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/engine/spec"
	"github.com/berth-runtime/berth/seccomp"
	"github.com/containerd/cgroups/v3/cgroup1"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// libraryRows measure the libraries within this process, and what a filter costs
// in the process that it is on.
func (b *bench) libraryRows() error {
	b.decoding()
	b.compiling()
	if err := b.callCost(); err != nil {
		return err
	}
	if v := b.views["v1"]; v == nil || !v.limits {
		progress("library: containerd/cgroups is compared on cgroup v1, which is not here")
		return nil
	}
	return errors.Join(b.groupLives(), b.groupStats(1), b.groupStats(1000))
}

// in measures a function as a contender, in turns of many calls each.
func in(name string, calls int, f func() error) contender {
	return contender{name, func() (sample, error) {
		begun := time.Now()
		for range calls {
			if err := f(); err != nil {
				return sample{}, err
			}
		}
		return sample{value: float64(time.Since(begun)) / 1e3 / float64(calls)}, nil
	}}
}

func (b *bench) decoding() {
	data, err := json.Marshal(b.spec(full, "/bin/true"))
	if err != nil {
		panic(err) // of a value of our own
	}
	row := &Row{Group: "library", Name: fmt.Sprintf("decode a config.json of %d KiB (berth checks it too)", len(data)>>10), Unit: "µs"}
	b.turns(row, 0, []contender{
		in(ours, 20, func() error {
			_, _, err := spec.ParseChecked(data)
			return err
		}),
		in("encoding/json", 20, func() error { return json.Unmarshal(data, new(specs.Spec)) }),
	})
}

func (b *bench) compiling() {
	profile := seccomp.Default()
	b.turns(&Row{Group: "library", Name: "compile the default seccomp profile", Unit: "µs"}, 0, []contender{
		in(ours, 5, func() error {
			_, err := seccomp.Compile(profile)
			return err
		}),
	})
}

const callCostCommand = "call-cost"

// printCallCost runs in a container: it prints the nanoseconds of a system call.
func printCallCost() {
	const calls = 1 << 20
	begun := time.Now()
	for range calls {
		_, _, _ = unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0)
	}
	fmt.Println(float64(time.Since(begun)) / calls)
}

// callCost measures a system call in a container under the same profile, that
// each engine has compiled its way.
func (b *bench) callCost() error {
	v := b.pureView()
	for _, k := range []kind{plain, filtered} {
		dir, err := b.bundle("cost", b.spec(k, "/bin/bench", callCostCommand))
		if err != nil {
			return err
		}
		var contenders []contender
		for _, e := range b.engines {
			contenders = append(contenders, contender{e.name, func() (sample, error) {
				words := e.command("run", "--bundle", dir, b.id())
				p, said, err := b.begin(words, "")
				if err != nil {
					return sample{}, err
				}
				printed := keep(said)
				defer printed.Close()
				if _, err := finish(p, said, time.Now(), words); err != nil {
					return sample{}, err
				}
				cost, err := strconv.ParseFloat(output(printed), 64)
				return sample{value: cost}, err
			}})
		}
		row := &Row{Group: "library", Name: "getppid in a container, " + string(k), Unit: "ns"}
		v.do(func() { b.turnsOf(row, 0, min(b.rounds, 10), contenders) })
	}
	return nil
}

func limits() *specs.LinuxResources {
	memory, pids, shares := int64(64<<20), int64(20), uint64(512)
	return &specs.LinuxResources{Memory: &specs.LinuxMemory{Limit: &memory}, Pids: &specs.LinuxPids{Limit: &pids}, CPU: &specs.LinuxCPU{Shares: &shares}}
}

// groupLives measure create, set, join and destroy of a cgroup, with a process
// that moves in and out again.
func (b *bench) groupLives() error {
	host, err := cgroup.Detect()
	if err != nil {
		return err
	}
	p, said, err := b.begin([]string{filepath.Join(b.root(), "bin/busybox"), "sleep", "1000"}, "")
	if err != nil {
		return err
	}
	defer said.Close()
	defer p.Wait()
	defer p.Kill()
	home, err := host.Create("/"+b.cgroup+"/home", cgroup.Force())
	if err != nil {
		return err
	}
	defer home.Close()
	row := &Row{Group: "library", Name: "cgroup: create, set three limits, join, leave, destroy; v1", Unit: "µs"}
	b.turns(row, 0, []contender{
		in(ours, 1, func() error {
			g, err := host.Create("/"+b.cgroup+"/one", cgroup.Force())
			if err != nil {
				return err
			}
			_, err = g.Set(limits())
			return errors.Join(err, g.Join(p.Pid), home.Join(p.Pid), g.Destroy())
		}),
		in("containerd/cgroups", 1, func() error {
			g, err := cgroup1.New(cgroup1.StaticPath("/"+b.cgroup+"/two"), limits())
			if err != nil {
				return err
			}
			return errors.Join(g.Add(cgroup1.Process{Pid: p.Pid}), home.Join(p.Pid), g.Delete())
		}),
	})
	return nil
}

// groupStats reads the statistics of n cgroups.
func (b *bench) groupStats(n int) error {
	host, err := cgroup.Detect()
	if err != nil {
		return err
	}
	mine, theirs := make([]*cgroup.Group, n), make([]cgroup1.Cgroup, n)
	defer func() {
		for _, g := range mine {
			if g != nil {
				_ = g.Destroy()
			}
		}
	}()
	for i := range mine {
		path := fmt.Sprintf("/%s/stats-%d", b.cgroup, i)
		if mine[i], err = host.Create(path, cgroup.Force()); err != nil {
			return err
		}
		if theirs[i], err = cgroup1.Load(cgroup1.StaticPath(path), cgroup1.WithHierarchy(known)); err != nil {
			return err
		}
	}
	row := &Row{Group: "library", Name: fmt.Sprintf("statistics of %d cgroups, v1", n), Unit: "µs"}
	b.turnsOf(row, 0, min(b.rounds, 10), []contender{
		in(ours, 1, func() error {
			for _, g := range mine {
				if _, err := g.Stats(); err != nil {
					return err
				}
			}
			return nil
		}),
		in("containerd/cgroups", 1, func() error {
			for _, g := range theirs {
				if _, err := g.Stat(cgroup1.IgnoreNotExist); err != nil {
					return err
				}
			}
			return nil
		}),
	})
	return nil
}

// known gives what containerd/cgroups finds by itself, without hierarchies
// that it knows nothing of.
func known() ([]cgroup1.Subsystem, error) {
	all, err := cgroup1.Default()
	return slices.DeleteFunc(all, func(s cgroup1.Subsystem) bool { return strings.HasPrefix(string(s.Name()), "name=") }), err
}
