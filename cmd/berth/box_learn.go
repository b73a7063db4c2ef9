package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/debug"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/engine/spec"
	"github.com/berth-runtime/berth/engine/supervisor"
)

// boxLearning is what is to be recorded of a box, and where it goes.
type boxLearning struct {
	name   string
	base   *specs.LinuxSeccomp // what the file has allowed before
	file   *os.File
	record *supervisor.Record
}

func (l *boxLearning) define(f *cli.Flags) {
	f.String(&l.name, "learn", "", "FILE", "record the system calls, and write a seccomp profile that allows no others; one that FILE has is added to")
}

func (l *boxLearning) wanted() bool { return l.name != "" }

// prepare reads what is to be merged, and opens the file: what has its name by the end may be the
// box's.
func (l *boxLearning) prepare() error {
	if !l.wanted() {
		return nil
	}
	if err := l.open(); err != nil {
		return fmt.Errorf("--learn: %w", err)
	}
	debug.SetGCPercent(100) // each call is some garbage
	l.record = supervisor.NewRecord(false)
	// What can't be merged is found before the command has run for nothing.
	if _, err := l.record.Profile(l.base); err != nil {
		return fmt.Errorf("--learn %s: %w", l.name, err)
	}
	return nil
}

func (l *boxLearning) open() error {
	data, err := []byte(nil), error(nil)
	if l.name != "-" {
		data, err = os.ReadFile(l.name)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(bytes.TrimSpace(data)) > 0 {
		if l.base, err = spec.ParseSeccomp(data); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	l.file, err = openOutput(l.name, 0o644)
	return err
}

// write waits until no process of the box is left, and writes the profile.
func (l *boxLearning) write(front *foreground, denials *supervisor.Denials) error {
	if !l.wanted() {
		return nil
	}
	if err := front.await(denials.Ended(), func() {}); err != nil {
		return err
	}
	if err := denials.Err(); err != nil {
		return fmt.Errorf("--learn: the recording is not complete, and %s is as it was: %w", l.name, err)
	}
	profile, err := l.record.Profile(l.base)
	if err == nil {
		err = replaceContents(l.file, func(w io.Writer) error { _, err := w.Write(spec.FormatSeccomp(profile)); return err })
	}
	if err != nil {
		return fmt.Errorf("--learn %s: %w", l.name, err)
	}
	fmt.Fprintf(os.Stderr, "berth box: %d different system calls\n", l.record.Calls())
	return nil
}
