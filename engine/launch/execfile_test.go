package launch

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// header is the head of an ELF file with one program header, at phoff, that says where
// the name of the interpreter is.
func header(phoff, offset, size uint64) []byte {
	le := binary.LittleEndian
	head := make([]byte, 4096)
	copy(head, "\x7fELF\x02\x01\x01")
	le.PutUint64(head[32:], phoff)
	le.PutUint16(head[54:], 56)
	le.PutUint16(head[56:], 1)
	if phoff <= 4096-56 {
		le.PutUint32(head[phoff:], elfInterp)
		le.PutUint64(head[phoff+8:], offset)
		le.PutUint64(head[phoff+32:], size)
	}
	copy(head[512:], "/lib/ld.so\x00")
	return head
}

// The headers are the container's to make up.
func TestInterpreterOf(t *testing.T) {
	for _, test := range []struct {
		phoff, offset, size uint64
		want                string
	}{
		{64, 512, 11, "/lib/ld.so"},
		{64, 512, 0, ""},
		{64, 4096, 11, ""},
		{64, math.MaxUint64, 2, ""},
		{64, 2, math.MaxUint64, ""},
		{4096 - 55, 512, 11, ""},
		{math.MaxInt64, 512, 11, ""},
		{math.MaxInt64 - 20, 512, 11, ""},
		{math.MaxUint64, 512, 11, ""},
	} {
		if got := interpreterOf(header(test.phoff, test.offset, test.size), binary.LittleEndian); got != test.want {
			t.Errorf("%+v: %q", test, got)
		}
	}
}

// A script with DOS line ends names an interpreter that is not there, beside one that is.
func TestInterpreterOfScript(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	write("bin/sh", "\x7fELF")
	root, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(root)
	for script, want := range map[string]string{
		"#! /bin/sh -e\n":       "",
		"#!/bin/sh\r\n":         `the script's interpreter "/bin/sh\r" is missing (the script has DOS line ends)`,
		"#!/bin/sh\u00a0-e\n":   `the script's interpreter "/bin/sh\u00a0-e" is missing`,
		"#!\t/bin/ash\t-e\n":    `the script's interpreter "/bin/ash" is missing`,
		"#! \t\n":               "the script names no interpreter behind #!",
		"#!/usr/bin/env sh\r\n": `the script's interpreter "/usr/bin/env" is missing`,
	} {
		write("script", script)
		if got := lookAt(root, "/script", unix.ENOENT); !strings.HasSuffix(got, want) || want == "" && got != "" {
			t.Errorf("%q: %q, want %q", script, got, want)
		}
	}
}

func FuzzInterpreterOf(f *testing.F) {
	f.Add(header(64, 512, 11))
	f.Add(header(math.MaxInt64, 0, 0))
	f.Fuzz(func(t *testing.T, head []byte) {
		if len(head) >= 20 {
			interpreterOf(head, binary.LittleEndian)
			interpreterOf(head, binary.BigEndian)
		}
	})
}
