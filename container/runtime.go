package container

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/internal/json"
	"github.com/berth-runtime/berth/internal/trace"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// A Runtime is a set of containers that share a folder.
type Runtime struct {
	// Root holds a folder for each container.
	Root string
	// Systemd lets systemd make the cgroups.
	Systemd bool
	// NoCgroup makes no cgroups.
	NoCgroup bool
	// IgnoreCgroupErrors says who gets a container without a cgroup where one is
	// refused and no limit was asked for.
	IgnoreCgroupErrors Callers
	// Warn is told what is odd but no error, Debug what may help to understand.
	// Both may be nil.
	Warn, Debug func(message string)
	// EndLimit is how long a process that was killed may take to end; 0 is half a minute.
	EndLimit time.Duration
	// Trace is told what takes how long; nil for nobody.
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
		return &BadID{id, "it is the name of a folder"}
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

// A Container is one that exists, with its folder open.
type Container struct {
	Record
	runtime *Runtime
	dir     int  // the container's folder, which is also its lock
	locked  bool // by this descriptor of the folder
	opened  *cgroup.Group
	parsed  *specs.Spec // the config, once Template has read it, for the plan of an exec
}

// claim makes the folder of a new container, and with it the id its own.
func (r *Runtime) claim(id string) (*Container, error) {
	if err := r.makeRoot(); err != nil {
		return nil, err
	}
	for {
		c, err := r.tryClaim(id)
		// Before we have its lock, delete --force may take the new folder for what
		// a killed command has left.
		if !errors.Is(err, ErrNotExist) {
			return c, err
		}
	}
}

func (r *Runtime) tryClaim(id string) (*Container, error) {
	// Between its making and its locking the folder looks like one whose maker was
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
		return nil, fmt.Errorf("make the state folder of container %s: %w", id, &os.PathError{Op: "mkdir", Path: path, Err: err})
	}
	c, err := r.open(id)
	if err == nil {
		if err = c.acquire(); err == nil {
			return c, nil
		}
		c.Close()
	}
	_ = unix.Rmdir(path)
	return nil, err
}

// lockRoot takes the lock of the root folder, which goes with the descriptor that
// is returned.
func (r *Runtime) lockRoot(how int) (int, error) {
	fd, err := unix.Open(r.Root, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("root folder for state: %w", &os.PathError{Op: "open", Path: r.Root, Err: err})
	}
	if err := flock(fd, how); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("lock the root folder for state %s: %w", r.Root, err)
	}
	return fd, nil
}

func flock(fd, how int) error {
	for {
		if err := unix.Flock(fd, how); err != unix.EINTR {
			return err
		}
	}
}

// makeRoot makes the root folder where it is missing.
func (r *Runtime) makeRoot() error {
	err := r.checkRoot()
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(r.Root, 0o700); err != nil {
			return fmt.Errorf("make the root folder for state: %w", err)
		}
		return nil
	}
	return err
}

// checkRoot refuses a root folder that others may write to: who can put files
// there decides what root's commands do, down to the hooks of a delete.
func (r *Runtime) checkRoot() error {
	var st unix.Stat_t
	if err := unix.Stat(r.Root, &st); err != nil {
		return fmt.Errorf("root folder for state: %w", &os.PathError{Op: "stat", Path: r.Root, Err: err})
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return fmt.Errorf("root folder for state %s: not a directory", r.Root)
	}
	if st.Mode&0o022 != 0 || st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("root folder for state %s: others may write to it (owner %d, mode %o); chown it to yourself and chmod it to 0700, or choose another with --root", r.Root, st.Uid, st.Mode&0o7777)
	}
	return nil
}

// find opens the folder of a container that was made by whoever owns the root.
func (r *Runtime) find(id string) (*Container, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	if err := r.checkRoot(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return r.open(id)
}

func (r *Runtime) open(id string) (*Container, error) {
	path := filepath.Join(r.Root, id)
	dir, err := unix.Open(path, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		if err == unix.ENOENT {
			return nil, fmt.Errorf("%w: %s (there is none in %s; --root looks in another folder)", ErrNotExist, id, r.Root)
		}
		return nil, fmt.Errorf("open the state folder of container %s: %w", id, err)
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

// halfMade says what a missing record means.
func halfMade(id string, err error) error {
	var syntax *json.SyntaxError
	var fault json.Fault
	switch {
	case errors.As(err, &syntax), errors.As(err, &fault):
		return fmt.Errorf("%w (berth delete --force removes the container, as far as can be told without it)", err)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return fmt.Errorf("container %s is half made: its %s is missing (another command is making it, or was killed; berth delete --force removes it)", id, recordFile)
}

// LoadForDelete finds a container in whatever state it is, also without a record.
func (r *Runtime) LoadForDelete(id string) (*Container, error) {
	c, err := r.find(id)
	if err != nil {
		return nil, err
	}
	if err := c.reload(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.warn("container %s: %v; deleting what is left without it", id, err)
	}
	return c, nil
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
	c.Record = *record
	return nil
}

func (c *Container) save() error {
	if err := writeFileAt(c.dir, recordFile, c.encode(), 0o600); err != nil {
		return fmt.Errorf("container %s: %w", c.ID, err)
	}
	return nil
}

// acquire takes the container's lock, the one of its folder. It goes with the
// descriptor, so a killed command does not keep it.
func (c *Container) acquire() error {
	if err := flock(c.dir, unix.LOCK_EX); err != nil {
		return fmt.Errorf("container %s: lock its state folder: %w", c.ID, err)
	}
	c.locked = true
	if c.gone() {
		return fmt.Errorf("%w: %s (another command has removed it)", ErrNotExist, c.ID)
	}
	return nil
}

// hold takes the lock of a container that is there, and reads anew what is on
// record: another command may have changed it. Who has the lock has read it.
func (c *Container) hold() error {
	if c.locked {
		return nil
	}
	if err := c.acquire(); err != nil {
		return err
	}
	err := c.reload()
	if err == nil && c.atStand() {
		err = c.endStandstill()
	}
	if err != nil {
		c.Release()
	}
	return err
}

// gone reports whether the folder was removed by who had its lock before.
func (c *Container) gone() bool {
	var st unix.Stat_t
	return unix.Fstat(c.dir, &st) != nil || st.Nlink == 0
}

// Release gives the lock up, also where a child that has not reached its execve
// still has the descriptor.
func (c *Container) Release() {
	if c.locked {
		_ = unix.Flock(c.dir, unix.LOCK_UN)
		c.locked = false
	}
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

// removeFolder removes the container's folder; the id is free from then on.
func (c *Container) removeFolder() {
	path := filepath.Join(c.runtime.Root, c.ID)
	_ = unix.Unlinkat(c.dir, configFile, 0)
	_ = unix.Unlinkat(c.dir, recordFile, 0)
	err := unix.Rmdir(path)
	if err == unix.ENOTEMPTY {
		// It was never started, or is to notify of its readiness, or a command was killed.
		_ = unix.Unlinkat(c.dir, notifyDir+"/"+notifySocket, 0)
		_ = unix.Unlinkat(c.dir, notifyDir, unix.AT_REMOVEDIR)
		for _, name := range [...]string{gateFile, standstillFile, "." + recordFile + ".new", "." + configFile + ".new"} {
			_ = unix.Unlinkat(c.dir, name, 0)
		}
		err = unix.Rmdir(path)
	}
	if err != nil && err != unix.ENOENT {
		c.runtime.warn("container %s: remove its state folder: %v", c.ID, err)
	}
}

// List returns the ids of all containers, sorted.
func (r *Runtime) List() ([]string, error) {
	entries, err := os.ReadDir(r.Root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() && CheckID(e.Name()) == nil {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
