package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// memoryRows measure what containers and commands take of memory.
func (b *bench) memoryRows() error {
	v := b.pureView()
	if v.limits {
		for _, k := range []kind{plain, full} {
			b.smallestLimit(v, k)
		}
	} else {
		progress("memory: no controller to limit it with")
	}
	if err := b.createdInit(v); err != nil {
		return err
	}
	return b.commandPeaks(v)
}

// smallestLimit searches for the smallest memory limit with which /bin/true runs
// three times in a row. Near to it that is a matter of luck, so what the search
// has found is raised until it does.
func (b *bench) smallestLimit(v *view, k kind) {
	row := &Row{Group: "memory", Name: fmt.Sprintf("smallest memory limit that runs /bin/true, %s, cgroup %s", k, v.words), Unit: "KiB"}
	row.target(1.2, 0.1)
	const step, most = 4, 32 << 10
	for _, e := range b.engines {
		low, high := int64(4), int64(most) // KiB
		var err error
		v.do(func() {
			for low < high {
				middle := (low + high) / 2 / step * step
				if b.runsWithin(e, k, middle) {
					high = middle
				} else {
					low = middle + step
				}
			}
			for !b.runsWithin(e, k, high) {
				if high += step; high > most {
					err = fmt.Errorf("it does not run with %d KiB", most)
					return
				}
			}
		})
		row.Cells = append(row.Cells, cellOf(e.name, []sample{{value: float64(high)}}, err))
	}
	b.report.add(row)
}

func (b *bench) runsWithin(e engine, k kind, kib int64) bool {
	s := b.spec(k, "/bin/true")
	if s.Linux.Resources.Memory == nil {
		s.Linux.Resources.Memory = &specs.LinuxMemory{}
	}
	limit := kib << 10
	s.Linux.Resources.Memory.Limit = &limit
	dir, err := b.bundle("limit", s)
	if err != nil {
		return false
	}
	for range 3 {
		id := b.id()
		_, err := b.time(e.command("run", "--bundle", dir, id))
		if err != nil {
			_, _ = b.time(e.command("delete", "--force", id))
			reapAll()
			return false
		}
	}
	return true
}

// createdInit looks at the first process of a container that is created.
func (b *bench) createdInit(v *view) error {
	dir, err := b.bundle("created", b.spec(v.kind(), "/bin/true"))
	if err != nil {
		return err
	}
	row := &Row{Group: "memory", Name: "first process of a created container, PSS, " + string(v.kind()), Unit: "KiB"}
	row.target(0.05, 0.005)
	for _, e := range b.engines {
		id := b.id()
		pidFile := filepath.Join(b.dir, id+".pid")
		var samples []sample
		var failed error
		v.do(func() {
			if _, failed = b.time(e.command("create", "--bundle", dir, "--pid-file", pidFile, id)); failed != nil {
				return
			}
			pid, err := pidIn(pidFile)
			if err == nil {
				var pss float64
				pss, err = kilobytes(pid, "smaps_rollup", "Pss:")
				samples = []sample{{value: pss}}
			}
			_, err2 := b.time(e.command("delete", "--force", id))
			_ = waitFor(pidFile)
			failed = errors.Join(err, err2)
		})
		row.Cells = append(row.Cells, cellOf(e.name, samples, failed))
	}
	b.report.add(row)
	return nil
}

// kilobytes reads a line "NAME   123 kB" of a file of /proc/PID.
func kilobytes(pid int, file, name string) (float64, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), file))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			return strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
		}
	}
	return 0, fmt.Errorf("/proc/%d/%s has no %s", pid, file, name)
}

// commandPeaks measure the peak of the command's own process.
func (b *bench) commandPeaks(v *view) error {
	dir, err := b.bundle("peak", b.spec(v.kind(), "/bin/true"))
	if err != nil {
		return err
	}
	row := &Row{Group: "memory", Name: "peak RSS of the run command's process, " + string(v.kind()), Unit: "KiB"}
	state := &Row{Group: "memory", Name: "peak RSS of a list command's process", Unit: "KiB"}
	for _, e := range b.engines {
		v.do(func() {
			s, err := peak(b, e.command("run", "--bundle", dir, b.id()))
			row.Cells = append(row.Cells, cellOf(e.name, []sample{s}, err))
			s, err = peak(b, e.command("list"))
			state.Cells = append(state.Cells, cellOf(e.name, []sample{s}, err))
		})
	}
	b.report.add(row)
	b.report.add(state)
	return nil
}

// peak runs a command and reads VmHWM at its exit. The rusage of a child counts
// what it was before its execve too, which is this program.
func peak(b *bench, words []string) (sample, error) {
	p, err := os.StartProcess(words[0], words, &os.ProcAttr{
		Env: os.Environ(), Files: []*os.File{b.null, b.null, b.null}, Sys: &syscall.SysProcAttr{Ptrace: true},
	})
	if err != nil {
		return sample{}, err
	}
	var s sample
	var status unix.WaitStatus
	options := false
	for {
		if _, err := unix.Wait4(p.Pid, &status, 0, nil); err == unix.EINTR {
			continue
		} else if err != nil {
			return sample{}, err
		}
		signal := 0
		switch {
		case status.Exited() && status.ExitStatus() == 0:
			return s, nil
		case status.Exited(), status.Signaled():
			return s, fmt.Errorf("%s: status %d", words[0], status)
		case !options:
			options = true
			if err := unix.PtraceSetOptions(p.Pid, unix.PTRACE_O_TRACEEXIT); err != nil {
				return s, err
			}
		case status.TrapCause() == unix.PTRACE_EVENT_EXIT:
			if s.value, err = kilobytes(p.Pid, "status", "VmHWM:"); err != nil {
				return s, err
			}
		case status.Stopped() && status.StopSignal() != unix.SIGTRAP:
			signal = int(status.StopSignal())
		}
		if err := unix.PtraceCont(p.Pid, signal); err != nil && err != unix.ESRCH {
			return s, err
		}
	}
}
