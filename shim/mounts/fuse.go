package mounts

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/reaper"
)

// mountFuse hands a mount of type fuse.NAME or fuse3.NAME to the helper that
// fuse installs, which starts the file system's daemon.
func mountFuse(m *wire.Mount, target string, r *reaper.Reaper) error {
	kind, name, _ := strings.Cut(m.Type, ".")
	helper := "mount." + kind
	var path string
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/sbin", "/usr/sbin") {
		if _, err := os.Stat(filepath.Join(dir, helper)); err == nil {
			path = filepath.Join(dir, helper)
			break
		}
	}
	if path == "" {
		return fmt.Errorf("%s is not in PATH", helper)
	}
	argv := []string{helper, m.Source, target}
	if len(m.Options) > 0 {
		argv = append(argv, "-o", strings.Join(m.Options, ","))
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	fd := null.Fd()
	child, err := r.Start(path, append(argv, "-t", name), &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{fd, fd, fd},
	}, nil)
	if err != nil {
		return err
	}
	if exit := child.Wait(); exit.Status != 0 {
		return fmt.Errorf("%s ended with status %d", helper, exit.Status)
	}
	return nil
}
