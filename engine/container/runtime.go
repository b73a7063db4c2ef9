package container

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/internal/atomicfile"
	"github.com/berth-runtime/berth/internal/settings"
	"github.com/berth-runtime/berth/internal/trace"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// A Runtime is a set of containers that share a directory.
type Runtime struct {
	// Root holds a directory for each container.
	Root string
	// Driver makes the cgroups; "" is Auto.
	Driver settings.Driver
	// Parent is the cgroup of containers that name no place of their own; "" is the default.
	Parent string
	// NoCgroup makes no cgroups.
	NoCgroup bool
	// IgnoreCgroupErrors says who gets a container without a cgroup where one is
	// refused and no limit was asked for.
	IgnoreCgroupErrors Callers
	// Warn is told what is odd but no error, Debug what may help to understand.
	// Both may be nil.
	Warn, Debug func(message string)
	// OnPlan is told what is to be done for a container, and what the host lacks, if it is set.
	OnPlan func(p *plan.Plan, lacks []string)
	// EndLimit is how long a process that was killed may take to end; 0 is half a minute.
	EndLimit time.Duration
	// Supervisor is a program that calls supervisor.Process when it is called by the name of
	// SupervisorName, for containers whose annotations ask for one; "" for none.
	Supervisor string
	// LearnIn is the directory for what those record; "" for none.
	LearnIn string
	// Trace is told what takes how long, or nil.
	Trace *trace.Trace
}

// Callers are some of those who may call the runtime.
type Callers uint8

const (
	Nobody Callers = iota
	// Rootless callers are not root, or are it only inside a user namespace, as
	// Podman calls the runtime of an ordinary user.
	Rootless
	Everybody
)

// endLimit is for who sets no other. Much memory takes a while to be given back.
const endLimit = 30 * time.Second

// Errors that callers branch on. Clients search their words.
var (
	ErrNotExist   = errors.New("container does not exist")
	ErrExists     = errors.New("container already exists")
	ErrNotRunning = errors.New("container not running")
	ErrRunning    = errors.New("container is still running")
	ErrNotPaused  = errors.New("container not paused")
	// ErrPaused is an ErrNotRunning, and reads like it.
	ErrPaused = fmt.Errorf("%w", ErrNotRunning)
)

// A BadID is a container id that can't be one.
type BadID struct{ ID, Why string }

func (e *BadID) Error() string { return fmt.Sprintf("container id %q: %s", e.ID, e.Why) }

// CheckID refuses ids that are no plain file name of harmless characters.
func CheckID(id string) error {
	switch {
	case id == "":
		return &BadID{id, "it is empty"}
	case id == "." || id == "..":
		return &BadID{id, "it is the name of a directory"}
	case len(id) > 255:
		return &BadID{id, "it is longer than the 255 bytes of a file name"}
	}
	for _, r := range id {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '+' || r == '-' || r == '.' {
			continue
		}
		return &BadID{id, fmt.Sprintf("the character %q is not one of [A-Za-z0-9_+.-]", r)}
	}
	return nil
}

func (r *Runtime) warn(format string, args ...any) {
	if r.Warn != nil {
		r.Warn(fmt.Sprintf(format, args...))
	}
}

func (r *Runtime) note(format string, args ...any) {
	if r.Debug != nil {
		r.Debug(fmt.Sprintf(format, args...))
	}
}

// A Container is one that exists, with its directory open.
type Container struct {
	Record
	runtime *Runtime
	dir     int  // the container's directory, which is also its lock
	locked  bool // by this descriptor of the directory
	opened  *cgroup.Group
	parsed  *specs.Spec // the config, once Template has read it, for the plan of an exec
}

// claim makes the directory of a new container, and with it the id its own.
func (r *Runtime) claim(id string) (*Container, error) {
	if err := r.makeRoot(); err != nil {
		return nil, err
	}
	for {
		c, err := r.tryClaim(id)
		// Before we have its lock, delete --force may take the new directory for what
		// a killed command has left.
		if !errors.Is(err, ErrNotExist) {
			return c, err
		}
	}
}

func (r *Runtime) tryClaim(id string) (*Container, error) {
	// Between its making and its locking the directory looks like one whose maker was
	// killed. gc asks for this lock before it believes that.
	root, err := r.lockRoot(unix.LOCK_SH)
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	path := filepath.Join(r.Root, id)
	if err := unix.Mkdirat(root, id, 0o700); err != nil {
		if err == unix.EEXIST {
			return nil, fmt.Errorf("%w: %s (in %s; choose another id, or remove that one by berth delete)", ErrExists, id, r.Root)
		}
		return nil, fmt.Errorf("create the state directory of container %s: %w", id, &os.PathError{Op: "mkdir", Path: path, Err: err})
	}
	c, err := r.open(root, id)
	if err == nil {
		if err = c.acquire(); err == nil {
			return c, nil
		}
		c.Close()
	}
	_ = unix.Unlinkat(root, id, unix.AT_REMOVEDIR)
	return nil, err
}

// find opens the directory of a container created by the root's owner.
func (r *Runtime) find(id string) (*Container, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	root, err := r.openRoot()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, r.noContainer(id)
	}
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	return r.open(root, id)
}

func (r *Runtime) noContainer(id string) error {
	return fmt.Errorf("%w: %s (not found in %s; --root selects another state directory)", ErrNotExist, id, r.Root)
}

// open opens a directory of the root. It is no link, and no one else's.
func (r *Runtime) open(root int, id string) (*Container, error) {
	dir, err := unix.Openat(root, id, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err == unix.ENOENT {
		return nil, r.noContainer(id)
	}
	if err == nil {
		if err = notOthers(dir); err != nil {
			unix.Close(dir)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open the state directory of container %s: %w", id, err)
	}
	return &Container{Record: Record{ID: id}, runtime: r, dir: dir}, nil
}

// Load finds a container.
func (r *Runtime) Load(id string) (*Container, error) {
	c, err := r.find(id)
	if err != nil {
		return nil, err
	}
	if err := c.reload(); err != nil {
		c.Close()
		return nil, halfMade(id, err)
	}
	return c, nil
}

// Each loads one container after another, and closes it when done with it. What is not to be loaded
// comes with the error that says why.
func (r *Runtime) Each(ids []string, do func(id string, c *Container, err error)) error {
	root, err := r.openRoot()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(root)
	for _, id := range ids {
		c, err := r.open(root, id)
		if err != nil {
			do(id, nil, err)
			continue
		}
		if err := c.reload(); err != nil {
			do(id, nil, halfMade(id, err))
		} else {
			do(id, c, nil)
		}
		c.Close()
	}
	return nil
}

// LoadLocked is Load for who goes on to Start or Delete the container, without force:
// these read what is on record under the container's lock, and need not do so again.
func (r *Runtime) LoadLocked(id string) (*Container, error) {
	c, err := r.find(id)
	if err != nil {
		return nil, err
	}
	if err := c.hold(); err != nil {
		c.Close()
		return nil, halfMade(id, err)
	}
	return c, nil
}

// LoadForDelete finds a container in whatever state it is, also without a record that can
// be read, of which Delete says more.
func (r *Runtime) LoadForDelete(id string) (*Container, error) {
	c, err := r.find(id)
	if err == nil {
		_ = c.reload()
	}
	return c, err
}

func (c *Container) reload() error {
	data, err := readFileAt(c.dir, recordFile)
	if err != nil {
		return fmt.Errorf("container %s: read its %s: %w", c.ID, recordFile, err)
	}
	record, err := decodeRecord(data)
	if err != nil {
		return fmt.Errorf("container %s: %w", c.ID, err)
	}
	if record.ID != c.ID {
		return fmt.Errorf("container %s: %s is of container %q: %w", c.ID, recordFile, record.ID, errForeign)
	}
	c.Record = *record
	return nil
}

func (c *Container) save() error {
	if err := atomicfile.Write(c.dir, recordFile, c.encode(), 0o600); err != nil {
		return fmt.Errorf("container %s: %w", c.ID, err)
	}
	return nil
}

// Close lets go of the container's descriptors; the container stays.
func (c *Container) Close() {
	c.Release()
	if c.opened != nil {
		c.opened.Close()
		c.opened = nil
	}
	if c.dir >= 0 {
		unix.Close(c.dir)
		c.dir = -1
	}
}

// List returns the ids of all containers, sorted.
func (r *Runtime) List() ([]string, error) {
	root, err := r.openRoot()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	dir := os.NewFile(uintptr(root), r.Root)
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	var ids []string
	for _, e := range entries {
		if e.IsDir() && CheckID(e.Name()) == nil {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
