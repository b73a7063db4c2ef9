package engine

import (
	"context"
	"errors"
	"os"
	"syscall"

	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// What a caller branches on.
var (
	ErrNotFound   = errors.New("container does not exist")
	ErrNotRunning = errors.New("process is not running")
	// ErrAlready is in the error of a Pause where the container is paused, and of a Resume where it
	// is not.
	ErrAlready = errors.New("it is so already")
	// ErrInvalid is in the error of a config, a process or resources that are not
	// what the OCI runtime spec wants.
	ErrInvalid = errors.New("invalid")
	// ErrNoStats is the answer of Stats where the container has no cgroup (any more).
	ErrNoStats = errors.New("no cgroup to read")
)

// Engine makes containers and finds those that it made.
type Engine interface {
	// Create makes a container and its init, which waits to be started.
	Create(ctx context.Context, spec *Create) (Container, *Process, error)
	// Restore makes a container from a checkpoint; its init runs.
	Restore(ctx context.Context, spec *Create, from *Restore) (Container, *Process, error)
	// Find gives a container that was made before, by another program of this process, without
	// looking for it.
	Find(id, bundle string) Container
	// Remove kills and removes whatever is left of a container, by its id alone.
	// That there is nothing left is no error.
	Remove(ctx context.Context, id string) error
	// Features is the OCI features document, as JSON.
	Features(ctx context.Context) ([]byte, error)
}

// Container is a container that an engine made.
type Container interface {
	Start(ctx context.Context) error
	// FinishStart goes on with a Start that was cut off when the container's program had begun to
	// run.
	FinishStart(ctx context.Context) error
	// Kill signals the init, or every process of the container. The error wraps
	// ErrNotRunning when there is no process to signal.
	Kill(ctx context.Context, sig syscall.Signal, all bool) error
	// Delete removes what the engine holds of a container whose init has ended or,
	// with force, kills it first. That there is nothing left is no error.
	Delete(ctx context.Context, force bool) error
	// Exec starts another process in the container.
	Exec(ctx context.Context, spec *Exec) (*Process, error)
	// Rejoin goes on with an Exec that was cut off after Held: see Exec. The error says that the
	// process has not executed its program.
	Rejoin(ctx context.Context, spec *Exec, p *Process, held Held) error
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
	// Update takes the resources object of config.json's linux section, as JSON.
	Update(ctx context.Context, resources []byte) error
	Pids(ctx context.Context) ([]int, error)
	Checkpoint(ctx context.Context, spec *Checkpoint) error
}

// Cgroup is a container's cgroup, which the shim reads without the engine's help.
type Cgroup interface {
	// Stats is a cgroup metrics message, with its type URL; see package wire. After
	// the cgroup has gone, and after Close, it is of the last reading; ErrNoStats
	// says that there was none.
	Stats() (typeURL string, message []byte, err error)
	// OOMKills is the number of OOM kills there.
	OOMKills() (uint64, error)
	// WatchOOM calls risen with that count when it has risen, until stop is called.
	WatchOOM(risen func(kills uint64)) (stop func(), err error)
	// Handover reads it and writes it down for another program, and Noted does without reading it.
	Handover() *wire.HandoverCgroup
	Noted() *wire.HandoverCgroup
	Close()
}

// Process is a process that an engine has just made, a child of the shim.
type Process struct {
	Pid int
	// Console is the master of the process's terminal, if it has one.
	Console *os.File
}

// Stdio are a process's standard streams; nil is /dev/null.
type Stdio struct {
	In, Out, Err *os.File
	// Terminal asks for a terminal in their place.
	Terminal bool
}

// Create says what container is to be made.
type Create struct {
	ID     string
	Bundle string
	Stdio  Stdio

	NoPivotRoot  bool
	NoNewKeyring bool
}

// Restore says what checkpoint a container comes from.
type Restore struct {
	Image  string
	Parent string
	Work   string
}

// Exec is a process to be started in a container.
type Exec struct {
	ID string
	// Process is the process object of config.json, as JSON.
	Process []byte
	// PidFile is where the pid is to be written.
	PidFile string
	Stdio   Stdio
	// Held, if not nil, is called when the process is there and, if the engine can do that, has yet
	// to execute its program, which it does after Held has returned. Done says whether it has,
	// before what Held has told of is let go. An engine that calls neither leaves no more to be
	// known than that Exec was called.
	Held func(p *Process, held Held) error
	Done func(executed bool)
}

// Held is by what a process is served until it executes its program, by this process or one that
// has its descriptors.
type Held struct {
	Socket int
	Name   string
}

// Checkpoint says how and where a container is to be written down.
type Checkpoint struct {
	Image               string
	Work                string
	Parent              string
	LeaveRunning        bool
	OpenTCP             bool
	ExternalUnixSockets bool
	Terminal            bool
	FileLocks           bool
	EmptyNamespaces     []string
	CgroupsMode         string
}
