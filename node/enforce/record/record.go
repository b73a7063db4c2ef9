package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/internal/atomicfile"
	"github.com/berth-runtime/berth/node/plan"
	"golang.org/x/sys/unix"
)

// Change is one thing that was changed.
type Change struct {
	Kind   plan.Kind `json:"kind"`
	Target string    `json:"target"`
	Name   string    `json:"name,omitempty"`
	Group  string    `json:"group,omitempty"`
	// Before is the value from before; "" for what was not there.
	Before string `json:"before,omitempty"`
	Wrote  string `json:"wrote"`
	// DropIn is the file that systemd makes for a property.
	DropIn *DropIn `json:"dropIn,omitempty"`
	// Made are the directories of a cgroup that was made.
	Made []string `json:"made,omitempty"`
	// PID and Start name a process.
	PID   int    `json:"pid,omitempty"`
	Start uint64 `json:"start,omitempty"`
	// Persistent changes outlive a boot.
	Persistent bool `json:"persistent,omitempty"`
	// For a while: it is undone before anything else is done.
	Passing bool `json:"passing,omitempty"`
	// Held is set for what was right already and has not been changed: it is on record for
	// the day another program changes it and it is restored, as Before is its value then.
	Held bool `json:"held,omitempty"`
}

// DropIn is a file with what it had before.
type DropIn struct {
	Path    string `json:"path"`
	Existed bool   `json:"existed,omitempty"`
	Content string `json:"content,omitempty"`
}

// ID names what was changed, as plan.Step does.
func (c *Change) ID() string {
	s := plan.Step{Kind: c.Kind, Target: c.Target, Name: c.Name}
	return s.ID()
}

// Record is all changes, oldest first.
type Record struct {
	Boot    string   `json:"boot"`
	Changes []Change `json:"changes"`

	dir  string
	lock *os.File
}

// LockedError says who has the record.
type LockedError struct {
	Dir string
	PID int
}

func (e *LockedError) Error() string {
	who := "another berth-node"
	if e.PID > 0 {
		who += " (pid " + strconv.Itoa(e.PID) + ")"
	}
	return "lock " + e.Dir + ": " + who + " is at work: systemctl reload berth-node lets the daemon read its configuration again, systemctl stop berth-node ends it"
}

// Open takes the record of a directory, which is made if it is missing.
func Open(dir, boot string) (*Record, error) {
	lock, err := takeLock(dir)
	if err != nil {
		return nil, err
	}
	_ = lock.Truncate(0) // for the others' error message
	_, _ = lock.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
	r, err := Read(dir, boot)
	if err != nil {
		lock.Close()
		return nil, err
	}
	r.lock = lock
	return r, nil
}

// takeLock locks the file that is in the directory now: one that was waited for may have been
// removed by Clear.
func takeLock(dir string) (*os.File, error) {
	path := filepath.Join(dir, "lock")
	for {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("create the directory of the record: %w", err)
		}
		lock, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if errors.Is(err, os.ErrNotExist) {
			continue // the directory was removed just now
		}
		if err != nil {
			return nil, fmt.Errorf("lock the record: %w", err)
		}
		if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			defer lock.Close()
			if !errors.Is(err, unix.EWOULDBLOCK) {
				return nil, fmt.Errorf("lock the record %s: %w", dir, err)
			}
			text := make([]byte, 32)
			n, _ := lock.Read(text)
			pid, _ := strconv.Atoi(strings.TrimSpace(string(text[:n])))
			return nil, &LockedError{dir, pid}
		}
		locked, err := lock.Stat()
		if err == nil {
			var there os.FileInfo
			if there, err = os.Stat(path); err == nil && os.SameFile(locked, there) {
				return lock, nil
			}
		}
		lock.Close()
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("lock the record: %w", err)
		}
	}
}

// Clear removes the record's files and, where nothing else is in it, its directory, if nothing is
// on record.
func (r *Record) Clear() error {
	if len(r.Changes) > 0 {
		return nil
	}
	for _, path := range []string{r.file(), filepath.Join(r.dir, "lock"), r.dir} {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("remove the record, which is empty: %w", err)
		}
	}
	return nil
}

// Read gives the record without taking it: it can't be saved.
func Read(dir, boot string) (*Record, error) {
	r := &Record{dir: dir}
	text, err := os.ReadFile(r.file())
	if errors.Is(err, os.ErrNotExist) {
		r.Boot = boot
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(text, r)
	}
	if err != nil {
		return nil, fmt.Errorf("read the record %s: %w (it has the node's original settings, and undo needs it: repair it, or remove it to start over)", r.file(), err)
	}
	if r.Boot != boot {
		r.Changes = slices.DeleteFunc(r.Changes, func(c Change) bool { return !c.Persistent })
		r.Boot = boot
	}
	return r, nil
}

// Close gives the record to others.
func (r *Record) Close() error {
	if r.lock == nil {
		return nil
	}
	return r.lock.Close()
}

func (r *Record) file() string { return filepath.Join(r.dir, "record.json") }

// Find gives the change of a thing, nil if there is none.
func (r *Record) Find(id string) *Change {
	for i := range r.Changes {
		if r.Changes[i].ID() == id {
			return &r.Changes[i]
		}
	}
	return nil
}

// Intend puts a change on record that is about to be made. What a thing was
// before the first change to it stays.
func (r *Record) Intend(c Change) error {
	if have := r.Find(c.ID()); have != nil {
		if have.PID == c.PID && have.Start == c.Start {
			c.Before, c.DropIn = have.Before, have.DropIn
			if len(c.Made) == 0 {
				c.Made = have.Made
			}
		}
		*have = c
	} else {
		r.Changes = append(r.Changes, c)
	}
	return r.save()
}

// Hold puts what is right already on record, unless something is on record for it.
func (r *Record) Hold(held []Change) error {
	before := len(r.Changes)
	for _, c := range held {
		if r.Find(c.ID()) == nil {
			c.Held = true
			r.Changes = append(r.Changes, c)
		}
	}
	if len(r.Changes) == before {
		return nil
	}
	return r.save()
}

// Drop takes a change off the record that was undone.
func (r *Record) Drop(id string) error {
	r.Changes = slices.DeleteFunc(r.Changes, func(c Change) bool { return c.ID() == id })
	return r.save()
}

// save is synced: what persistent changes were made from is to be known after a power cut, too.
func (r *Record) save() error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = atomicfile.WriteSynced(unix.AT_FDCWD, r.file(), append(text, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("save the record: %w", err)
	}
	return nil
}
