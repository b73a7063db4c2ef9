package main

import (
	"os"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/cmd/internal/clidoc"
	"github.com/berth-runtime/berth/node/config"
)

// Each command has a man page, which has each key of the configuration.
func TestMan(t *testing.T) {
	t.Chdir(t.TempDir())
	if got := run([]string{"berth-node", "man", "--dir", "man"}); got != 0 {
		t.Fatalf("exit status %d", got)
	}
	for _, name := range []string{"", "-plan", "-apply", "-status", "-watch", "-undo", "-doctor", "-kubelet-config", "-completion", "-man"} {
		page, err := os.ReadFile("man/man1/berth-node" + name + ".1")
		if err != nil {
			t.Error(err)
			continue
		}
		text := strings.ReplaceAll(string(page), `\-`, "-")
		if name == "-plan" || name == "-apply" || name == "-status" || name == "-watch" || name == "-undo" || name == "-doctor" || name == "-kubelet-config" {
			for _, k := range config.Keys() {
				if !strings.Contains(text, "--"+k.Name) {
					t.Errorf("berth-node%s(1) lacks --%s", name, k.Name)
				}
			}
		}
		if !strings.Contains(text, "berth(1)") {
			t.Errorf("berth-node%s(1) points to no other page", name)
		}
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range clidoc.Shells() {
		script, err := clidoc.Completion(clidoc.Tree(command()), shell)
		if err != nil || !strings.Contains(string(script), "system-reserved-enforce") {
			t.Errorf("%s: %v\n%s", shell, err, script)
		}
	}
	if _, err := clidoc.Completion(clidoc.Tree(command()), "tcsh"); err == nil {
		t.Error("a completion for tcsh")
	}
}
