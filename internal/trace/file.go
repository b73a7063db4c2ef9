package trace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Write ends the Trace and writes it to a file: as JSON or as a picture, by the ending
// of its name. With neither ending it becomes two files, with one each.
func (t *Trace) Write(file string) error {
	if t == nil || t.told {
		return nil
	}
	t.end()
	var err error
	switch filepath.Ext(file) {
	case ".json":
		err = write(file, t.JSON())
	case ".svg":
		err = write(file, t.SVG())
	default:
		if err = write(file+".json", t.JSON()); err == nil {
			err = write(file+".svg", t.SVG())
		}
	}
	if err != nil {
		return fmt.Errorf("--trace: %w", err)
	}
	return nil
}

// write makes the file, and follows no link to it nor waits at a pipe: the container,
// which has ended, may have been given the directory to write to.
func write(name string, text []byte) error {
	const flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC | unix.O_NOFOLLOW | unix.O_NONBLOCK
	f, err := os.OpenFile(name, flags, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
