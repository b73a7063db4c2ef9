package bootstrap

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/berth-runtime/berth/internal/proc/mountinfo"
	"github.com/berth-runtime/berth/internal/start/entry"
	"github.com/berth-runtime/berth/shim/keeper"
	"golang.org/x/sys/unix"
)

// serverProcs bounds the threads that run Go at a time in a server, which waits
// nearly always.
const serverProcs = "GOMAXPROCS=1"

// fork leaves a server behind that serves the listener as its descriptor 3 and,
// if there is one, the socket for debugging as 4. It holds nothing else of ours:
// containerd waits for the end of our output.
func fork(a *Args, p *params, listener, debug *os.File) error {
	if os.Getenv("SCHED_CORE") != "" {
		// The group's cookie is inherited by the server and by the containers.
		const forProcessGroup = 2 // PIDTYPE_PGID
		err := unix.Prctl(unix.PR_SCHED_CORE, unix.PR_SCHED_CORE_CREATE, 0, forProcessGroup, 0)
		// It is asked for where it is to be had: not in a kernel without it (EINVAL), nor where no
		// core has two threads (ENODEV).
		if err != nil && err != unix.EINVAL && err != unix.ENODEV {
			return fmt.Errorf("SCHED_CORE is set: make a core scheduling group: %w", err)
		}
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	self, err := os.Executable()
	if err != nil {
		self = "/proc/self/exe"
	}
	fd := null.Fd()
	files := []uintptr{fd, fd, fd, listener.Fd()}
	server := *a
	server.Socket, server.DebugSocket = listener.Name(), ""
	if debug != nil {
		server.DebugSocket = debug.Name()
		files = append(files, debug.Fd())
	}
	env := serverEnv(p)
	kept := p.options.Keeper || os.Getenv(keeperVariable) == "1"
	if kept {
		memory, err := withKeeper(p)
		if err != nil {
			return err
		}
		defer memory.Close()
		if debug == nil {
			files = append(files, fd) // a place that the debug socket would have
		}
		files = append(files, memory.Fd())
		env = append([]string{entry.KeeperVariable}, env...)
	}
	if err := keepNothing(); err != nil {
		return err
	}
	pid, err := entry.ForkExec(self, server.Server(os.Args[0]), &syscall.ProcAttr{
		Env:   env,
		Files: files,
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		return fmt.Errorf("fork the server: %w", err)
	}
	if kept {
		return nil
	}
	if err := place(pid, p.options.ShimCgroup); err != nil {
		unix.Kill(pid, unix.SIGKILL)
		return err
	}
	return nil
}

// keeperVariable asks for a keeper where the options do not.
const keeperVariable = "BERTH_SHIM_KEEPER"

// withKeeper makes the memory of a server that is to have a keeper. That parts itself from the
// server at once, so this process goes first where both are to be.
func withKeeper(p *params) (*os.File, error) {
	if !entry.CanKeep() {
		return nil, errors.New("option Keeper: this program was built without the entry that a keeper is part of (use build/scripts/build, on amd64)")
	}
	if p.options.ShimCgroup != "" {
		if err := joinCgroup(os.Getpid(), p.options.ShimCgroup); err != nil {
			return nil, err
		}
	}
	return keeper.Create()
}

// keepNothing marks all but the standard streams close-on-exec: what containerd
// itself was started with, or leaks, is not to live on in a server.
func keepNothing() error {
	const first = 3
	if unix.CloseRange(first, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) == nil { // Linux 5.11
		return nil
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range open {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= first {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

func place(pid int, cgroup string) error {
	if cgroup != "" {
		if err := joinCgroup(pid, cgroup); err != nil {
			return err
		}
	}
	return adjustOOMScore(pid)
}

// serverEnv is our environment as the server is to have it.
func serverEnv(p *params) []string {
	env := make([]string, 0, len(os.Environ())+2)
	for _, e := range os.Environ() {
		if strings.HasPrefix(e, "GOMAXPROCS=") || p.message.TTRPCAddress != "" && strings.HasPrefix(e, "TTRPC_ADDRESS=") {
			continue
		}
		env = append(env, e)
	}
	if p.message.TTRPCAddress != "" {
		env = append(env, "TTRPC_ADDRESS="+p.message.TTRPCAddress)
	}
	return append(env, serverProcs)
}

// adjustOOMScore makes the server a better victim than containerd, whose child
// this process is, by one.
func adjustOOMScore(pid int) error {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(os.Getppid()) + "/oom_score_adj")
	if err != nil {
		return fmt.Errorf("read containerd's oom score: %w", err)
	}
	score, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("read containerd's oom score: %w", err)
	}
	path := "/proc/" + strconv.Itoa(pid) + "/oom_score_adj"
	if err := os.WriteFile(path, []byte(strconv.Itoa(min(score+1, 1000))), 0); err != nil {
		return fmt.Errorf("set the shim's oom score: %w", err)
	}
	return nil
}

// joinCgroup moves the server into a cgroup that must be there: on version 2 in
// the one hierarchy, else in each of version 1.
func joinCgroup(pid int, path string) error {
	mounts, err := mountinfo.Of("self", "cgroup", "cgroup2")
	if err != nil {
		return err
	}
	joined := 0
	for _, m := range mounts {
		procs := filepath.Join(m.Point, path, "cgroup.procs")
		err := os.WriteFile(procs, []byte(strconv.Itoa(pid)), 0)
		if err == nil {
			joined++
		} else if !os.IsNotExist(err) {
			return fmt.Errorf("option ShimCgroup: %w", err)
		}
	}
	if joined == 0 {
		return fmt.Errorf("option ShimCgroup: there is no cgroup %s", path)
	}
	return nil
}
