package container

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/internal/atomicfile"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// A Leftover is what a killed command has left of one container.
type Leftover struct {
	ID  string
	Why string
	// What is to be removed, in words.
	What []string

	remove func() error
}

// CollectGarbage finds what killed commands have left and removes it, or with
// dry only finds it; tell hears of each before it is removed. A container that
// another command works on is left alone, and so is a complete one: also when its
// process has ended, since its creator may still ask for its state.
func (r *Runtime) CollectGarbage(dry bool, tell func(*Leftover)) error {
	ids, err := r.List()
	if err != nil {
		return err
	}
	root, err := r.openRoot()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // no container was ever created
	} else if err != nil {
		return err
	}
	defer unix.Close(root)
	var failed error
	if !dry {
		failed = r.removeLeftParents()
	}
	for _, id := range ids {
		failed = errors.Join(failed, r.collect(root, id, dry, tell))
	}
	return failed
}

func (r *Runtime) collect(root int, id string, dry bool, tell func(*Leftover)) error {
	defer r.Trace.Begin("look after " + id).End()
	c, err := r.open(root, id)
	if errors.Is(err, ErrNotExist) {
		return nil // deleted meanwhile
	}
	if err != nil {
		return err
	}
	defer c.Close()
	// A command that creates, starts or deletes the container has its lock, which the
	// kernel takes from the dead.
	held, err := c.tryAcquire()
	if held && !c.has(recordFile) {
		// Killed, or about to lock what it has just made: makers hold the lock of
		// the root meanwhile.
		c.Release()
		lock, err := r.lockRoot(unix.LOCK_EX)
		if err != nil {
			return err
		}
		held, err = c.tryAcquire()
		unix.Close(lock)
		if err != nil {
			return err
		}
	}
	if err != nil || !held {
		return err
	}
	found, err := c.leftover(marked(root))
	if err != nil || found == nil {
		return err
	}
	tell(found)
	if dry {
		return nil
	}
	return found.remove()
}

// tryAcquire takes the lock if it is free and the container is still there.
func (c *Container) tryAcquire() (bool, error) {
	if err := unix.Flock(c.dir, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if err == unix.EWOULDBLOCK {
			return false, nil
		}
		return false, fmt.Errorf("container %s: lock its state directory: %w", c.ID, err)
	}
	c.locked = true
	return !c.gone(), nil
}

// leftover looks at a container that no command holds, and says what is left of
// it by a killed command; nil if it is unhurt, or not known to be ours.
func (c *Container) leftover(ours bool) (*Leftover, error) {
	folder := "its state directory"
	err := c.reload()
	if errors.Is(err, errForeign) {
		c.runtime.note("%v", err)
		return nil, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		if !ours || len(c.foreign()) > 0 {
			c.runtime.note("%s in %s is not a container's directory", c.ID, c.runtime.Root)
			return nil, nil
		}
		return &Leftover{ID: c.ID, Why: "its creation or deletion was killed", What: []string{folder},
			remove: func() error { c.removeFolder(); return nil }}, nil
	}
	if err != nil {
		return nil, err // no kill does this: records are written whole
	}
	switch {
	case c.Pid == 0:
		what := slices.Concat(c.Rdt, []string{folder})
		if c.Cgroup.Path != "" {
			busy, err := c.groupBusy()
			switch {
			case err != nil:
				return nil, err
			case busy:
				c.runtime.warn("container %s: its create was killed, but the cgroup %s meant for it is in use, and is left", c.ID, c.Cgroup.Path)
			case c.Cgroup.Unit != "":
				what = append([]string{"its unit " + c.Cgroup.Unit}, what...)
			default:
				what = append([]string{"its cgroup " + c.Cgroup.Path}, what...)
			}
		}
		return &Leftover{ID: c.ID, Why: "its creation was killed", What: what, remove: c.remove}, nil
	case !c.Alive() && !c.has(configFile):
		return &Leftover{ID: c.ID, Why: "its deletion was killed", What: []string{folder}, remove: c.remove}, nil
	}
	return c.stale(), nil
}

// groupBusy reports whether a process is in the cgroup of a container that has
// no process of its own.
func (c *Container) groupBusy() (bool, error) {
	g, err := c.OpenGroup()
	if errors.Is(err, fs.ErrNotExist) || g == nil && err == nil {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("container %s: open its cgroup: %w", c.ID, err)
	}
	defer g.Close()
	return !abandoned(g), nil
}

// abandoned reports whether a cgroup has no process, but for inits whose maker
// is gone: those end when they find out, which is waited for. One that stays is
// another container's.
func abandoned(g *cgroup.Group) bool {
	pids, err := g.AllProcs()
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil {
		return false
	}
	for _, pid := range pids {
		if _, err := executable(pid); err != unix.ENOENT && !isInit(pid) {
			return false
		}
	}
	if len(pids) == 0 {
		return true
	}
	if frozen, err := g.Frozen(); err == nil && frozen {
		_ = g.Thaw() // or they would not find out
	}
	g.Host().Timeout = 2 * time.Second
	err = g.WaitEmpty()
	return err == nil || errors.Is(err, fs.ErrNotExist)
}

// stale finds single files, and a standstill, that a killed command has left in a
// container that is otherwise whole.
func (c *Container) stale() *Leftover {
	var names, what []string
	stands := c.atStand()
	if c.has(gateFile) && !stands && c.status() == specs.StateRunning {
		names, what = append(names, gateFile), append(what, "the socket of its start, which is over")
	}
	if c.has(poststartFile) {
		names, what = append(names, poststartFile), append(what, "the note of poststart hooks that were cut off")
	}
	for _, file := range [...]string{recordFile, configFile} {
		if temporary := atomicfile.Temporary(file); c.has(temporary) {
			names, what = append(names, temporary), append(what, "a half-written "+file)
		}
	}
	if stands {
		what = append(what, "the standstill of its processes for an update")
	}
	if len(what) == 0 {
		return nil
	}
	return &Leftover{ID: c.ID, Why: "a command on it was killed", What: what, remove: func() error {
		var failed error
		if stands {
			failed = c.endStandstill()
		}
		for _, name := range names {
			if err := unix.Unlinkat(c.dir, name, 0); err != nil && err != unix.ENOENT {
				failed = errors.Join(failed, fmt.Errorf("container %s: remove %s: %w", c.ID, name, err))
			}
		}
		return failed
	}}
}

// has reports whether there is a file in the container's directory.
func (c *Container) has(name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(c.dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
}
