package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/seccomp"
)

// floorName is the contender that does the least: testdata/floor.
const floorName = "C floor"

// buildFloor builds it as the peers are built. Without a C compiler there is no such contender.
func (b *bench) buildFloor(source string) {
	if source == "" {
		return
	}
	path := filepath.Join(b.dir, "floor")
	cc := exec.Command("cc", "-O2", "-static", "-o", path, source)
	if out, err := cc.CombinedOutput(); err != nil {
		progress("no C floor: cc: %v: %.300s", err, out)
		return
	}
	b.floor = path
}

// floorWords is the command by which the floor does what a config asks for, in the calling view.
func (b *bench) floorWords(name string, s *specs.Spec) ([]string, error) {
	filter := "-"
	if s.Linux.Seccomp != nil {
		compiled, err := seccomp.Compile(s.Linux.Seccomp)
		if err != nil {
			return nil, err
		}
		filter = filepath.Join(b.dir, "floor-"+name+".bpf")
		if err := os.WriteFile(filter, compiled.Bytes(), 0o600); err != nil {
			return nil, err
		}
	}
	words := []string{b.floor, b.root(), filter}
	dirs, _ := mounted()
	for _, dir := range dirs {
		group := filepath.Join(dir, b.cgroup, name)
		words = append(words, group)
		// A new group of version 1 has no CPUs and no memory nodes.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			above, err := os.ReadFile(filepath.Join(dir, b.cgroup, file))
			if _, err2 := os.Stat(filepath.Join(dir, b.cgroup, "cgroup.controllers")); err == nil && err2 != nil {
				words = append(words, filepath.Join(group, file)+"="+strings.TrimSpace(string(above)))
			}
		}
		for _, w := range floorWrites(s) {
			if _, err := os.Stat(filepath.Join(dir, b.cgroup, w.file)); err == nil {
				words = append(words, filepath.Join(group, w.file)+"="+w.value)
			}
		}
	}
	return words, nil
}

type write struct{ file, value string }

// floorWrites are the limits of the bench's configs, as the files of version 1 have them; of what
// a directory lacks nothing is written.
func floorWrites(s *specs.Spec) []write {
	var writes []write
	r := s.Linux.Resources
	if r.Devices != nil {
		writes = append(writes, write{"devices.deny", "a"})
		for _, allowed := range []string{"c *:* m", "b *:* m", "c 1:3 rwm", "c 1:5 rwm", "c 1:7 rwm", "c 1:8 rwm", "c 1:9 rwm", "c 5:0 rwm", "c 5:2 rwm", "c 136:* rwm"} {
			writes = append(writes, write{"devices.allow", allowed})
		}
	}
	if r.Memory != nil {
		writes = append(writes, write{"memory.limit_in_bytes", fmt.Sprint(*r.Memory.Limit)})
	}
	if r.CPU != nil {
		writes = append(writes, write{"cpu.shares", fmt.Sprint(*r.CPU.Shares)}, write{"cpu.cfs_period_us", fmt.Sprint(*r.CPU.Period)}, write{"cpu.cfs_quota_us", fmt.Sprint(*r.CPU.Quota)})
	}
	if r.Pids != nil {
		writes = append(writes, write{"pids.max", fmt.Sprint(*r.Pids.Limit)})
	}
	return writes
}

// floorOf is the contender, nil where there is none.
func (b *bench) floorOf(name string, s *specs.Spec) (*contender, error) {
	if b.floor == "" {
		return nil, nil
	}
	words, err := b.floorWords(name, s)
	if err != nil {
		return nil, err
	}
	return &contender{floorName, func() (sample, error) { return b.time(words) }}, nil
}
