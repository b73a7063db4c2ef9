package enforce

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/berth-runtime/berth/internal/atomicfile"
	"github.com/berth-runtime/berth/internal/settings"
	"github.com/berth-runtime/berth/node/enforce/record"
	"github.com/berth-runtime/berth/node/plan"
	"golang.org/x/sys/unix"
)

// The host's settings for berth and its shim are a file of the administrator's, of which one line
// is ours. It outlives a boot.

func (e *Engine) setParent(s plan.Step) error {
	file := e.Machine.SettingsFile()
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	// What has to be made goes with its last word.
	var made []string
	for at := file; errors.Is(err, os.ErrNotExist) && len(made) < 2; at = filepath.Dir(at) {
		if _, err := os.Lstat(at); err == nil {
			break
		}
		made = append(made, at)
	}
	if err := e.intend(s, func(c *record.Change) { c.Persistent, c.Made = true, made }); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return atomicfile.WriteSynced(unix.AT_FDCWD, file, []byte(settings.WithParent(string(text), s.Value)), 0o644)
}

func (e *Engine) revertParent(c *record.Change) error {
	file := e.Machine.SettingsFile()
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	before := settings.WithParent(string(text), c.Before)
	if before == "" && len(c.Made) > 0 {
		for _, made := range c.Made {
			// A directory in which there is something now stays.
			if err := os.Remove(made); err != nil && !errors.Is(err, os.ErrNotExist) && made == file {
				return err
			}
		}
		return nil
	}
	if before == string(text) {
		return nil
	}
	return atomicfile.WriteSynced(unix.AT_FDCWD, file, []byte(before), 0o644)
}
