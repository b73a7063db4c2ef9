package main

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

var (
	helpCommand = regexp.MustCompile(`(?m)^ {2,}([a-z]+) {2,}\S`)
	helpFlag    = regexp.MustCompile(`(?m)^ +(--?[a-z][a-z0-9-]*)(?: value)?(?:, (--?[a-z]+)(?: value)?)? `)
)

// flagsIn are the flags that a help lists, each with its other form.
func flagsIn(help string) (all [][]string) {
	for _, m := range helpFlag.FindAllStringSubmatch(help, -1) {
		if forms := slices.DeleteFunc(m[1:], func(form string) bool { return form == "" }); !slices.Contains(forms, "--help") {
			all = append(all, forms)
		}
	}
	return all
}

// usedIn tells whether a line of commands.txt calls a command, with a flag in one of its forms if
// any are given.
func usedIn(lines []string, command string, forms []string) bool {
	return slices.ContainsFunc(lines, func(line string) bool {
		words := strings.Fields(line)
		return (command == "" || slices.Contains(words, command)) && (forms == nil || slices.ContainsFunc(words, func(word string) bool { return slices.Contains(forms, word) }))
	})
}

// Each command of runc's, and each flag of it, is called by a line: clients may use any of them.
func TestEveryCommand(t *testing.T) {
	peers, missing := findPeers()
	at := slices.IndexFunc(peers, func(e engine) bool { return e.Name == "runc" })
	if at < 0 {
		harness.Skip(t, "needs runc, whose help has the list: %s", strings.Join(missing, "; "))
	}
	help := func(words ...string) string {
		out, err := exec.Command(peers[at].Path, append(words, "--help")...).Output()
		if err != nil {
			t.Fatalf("runc %v --help: %v", words, err)
		}
		return string(out)
	}
	var lines []string
	for line := range strings.Lines(commandLines) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			lines = append(lines, line)
		}
	}
	_, list, _ := strings.Cut(help(), "COMMANDS:")
	list, global, _ := strings.Cut(list, "GLOBAL OPTIONS:")
	commands := helpCommand.FindAllStringSubmatch(list, -1)
	if len(commands) < 15 {
		t.Fatalf("runc --help lists %d commands", len(commands))
	}
	for _, forms := range flagsIn(global) {
		if !usedIn(lines, "", forms) {
			t.Errorf("commands.txt has no line with %s", forms[0])
		}
	}
	for _, match := range commands {
		command := match[1]
		if !usedIn(lines, command, nil) {
			t.Errorf("commands.txt has no line for %s", command)
			continue
		}
		_, options, _ := strings.Cut(help(command), "OPTIONS:")
		for _, forms := range flagsIn(options) {
			if !usedIn(lines, command, forms) {
				t.Errorf("commands.txt has no line for %s %s", command, forms[0])
			}
		}
	}
}
