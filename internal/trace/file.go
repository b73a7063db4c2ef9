package trace

import (
	"fmt"
	"os"
	"path/filepath"
)

// Write ends the Trace and writes it to a file: as JSON or as a picture, by the ending
// of its name. With neither ending it becomes two files, with one each.
func (t *Trace) Write(file string) error {
	if t == nil {
		return nil
	}
	t.end()
	var err error
	switch filepath.Ext(file) {
	case ".json":
		err = os.WriteFile(file, t.JSON(), 0o644)
	case ".svg":
		err = os.WriteFile(file, t.SVG(), 0o644)
	default:
		if err = os.WriteFile(file+".json", t.JSON(), 0o644); err == nil {
			err = os.WriteFile(file+".svg", t.SVG(), 0o644)
		}
	}
	if err != nil {
		return fmt.Errorf("--trace: %w", err)
	}
	return nil
}
