package cgrouptool

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/berth-runtime/berth/cgroup/systemd"
	"github.com/berth-runtime/berth/cgroup/systemd/unit"
)

// EnterScope puts this process into a scope of its own below a slice, as systemd-run --scope does.
// It is delegated, so that relative paths begin there from then on, and ends with what is in it.
// user says that the systemd of an ordinary user makes it. Where the process is in a delegated unit
// already, that is its place.
func (t *Tools) EnterScope(parent string, user bool) error {
	if base, err := t.Host.Base(); err != nil || base != "/" {
		return err
	}
	place, err := unit.Below(parent, "berth", "run-"+strconv.Itoa(os.Getpid()))
	if err != nil {
		return err
	}
	manager := systemd.New(systemd.Options{User: user})
	defer manager.Close()
	if err := manager.Start(context.Background(), place.Unit, systemd.Base(place, "berth cgroup run", os.Getpid())); err != nil {
		return fmt.Errorf("%w (--path names a cgroup that needs no systemd)", err)
	}
	if base, err := t.Host.Base(); err == nil && base == "/" {
		return fmt.Errorf("systemd has started %s, and has not put this process into it", place.Unit)
	}
	return nil
}
