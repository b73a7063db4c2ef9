package doctor

import (
	"os"
	"path/filepath"
	"strings"
)

// Audience says which users a finding concerns.
type Audience uint8

// Root runs containers with the host's rights, User without.
const (
	Root Audience = 1 << iota
	User

	Everyone = Root | User
)

// State is how a check came out.
type State uint8

// The states. A Gap is to be closed, a Note is good to know.
const (
	Fine State = iota
	Note
	Gap
)

// A Finding is the outcome of one check.
type Finding struct {
	Check   string
	For     Audience
	State   State
	Found   string
	Without string // what does not work as it is
	Fix     []Fix
}

// A Fix is one step of closing a gap: a command, or a file to be written.
type Fix struct {
	Run           string
	File, Content string
}

// A Machine is what is examined, and by which user.
type Machine struct {
	// Root is "" for this machine, or a directory with another one's files.
	Root string
	UID  int
	Name string // of the user, "" where there is no name
	Env  func(string) string
	// Program is the path of the engine, for rules that name it.
	Program string
}

// Here is the machine that this process runs on.
func Here() *Machine {
	m := &Machine{UID: os.Geteuid(), Env: os.Getenv, Program: "/usr/bin/berth"}
	m.Name = m.userName()
	if path, err := os.Executable(); err == nil {
		m.Program = path
	}
	return m
}

// Kind is the audience that the caller belongs to.
func (m *Machine) Kind() Audience {
	if m.UID == 0 {
		return Root
	}
	return User
}

// Examine makes all checks.
func (m *Machine) Examine() []Finding {
	var findings []Finding
	checks := []func(*Machine) []Finding{containerInit, kernelVersion, cgroupLayout, controllers, delegation, systemd, subordinateIDs, mapPrograms,
		namespaceLimits, securityModules, overlay, capabilities, containers}
	if m.Root == "" {
		checks = append(checks, userNamespace, bus, kernelFeatures)
	}
	for _, check := range checks {
		findings = append(findings, check(m)...)
	}
	return findings
}

// Healthy reports whether nothing is missing for an audience.
func Healthy(findings []Finding, kind Audience) bool {
	for i := range findings {
		if findings[i].State == Gap && findings[i].For&kind != 0 {
			return false
		}
	}
	return true
}

// path is a file of the machine.
func (m *Machine) path(name string) string { return filepath.Join("/", m.Root, name) }

// read gives the text of a small file, without white space around it; "" if it
// can't be read.
func (m *Machine) read(name string) string {
	text, err := os.ReadFile(m.path(name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

func (m *Machine) exists(name string) bool {
	_, err := os.Lstat(m.path(name))
	return err == nil
}

// sudo puts an ordinary user's command into root's hands.
func (m *Machine) sudo(command string) Fix {
	if m.UID != 0 {
		command = "sudo " + command
	}
	return Fix{Run: command}
}

func dropIn(file, content string) Fix { return Fix{File: file, Content: content} }
