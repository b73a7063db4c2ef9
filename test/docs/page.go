// Package docs runs the commands of the pages in docs/, so that what they tell
// people to type works.
//
// Each ```sh block is a script for bash -eu, all of a page's in one folder, in their
// order. The lines of a ```text block right behind it must come in its output, in
// their order; "…" stands for anything. Environment variables do not pass from block
// to block, files do.
package docs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// A Block is one script of a page, with what it is to print.
type Block struct {
	Line   int // of its first command
	Script string
	Output []string
}

// Parse takes the blocks out of a page.
func Parse(text string) []Block {
	var blocks []Block
	lines := strings.Split(text, "\n")
	behind := false // only a blank or nothing since the last script
	for i := 0; i < len(lines); i++ {
		language, fence := strings.CutPrefix(lines[i], "```")
		if !fence {
			behind = behind && strings.TrimSpace(lines[i]) == ""
			continue
		}
		first := i + 1
		for i++; i < len(lines) && lines[i] != "```"; i++ {
		}
		body := lines[first:min(i, len(lines))]
		switch {
		case language == "sh":
			blocks = append(blocks, Block{Line: first + 1, Script: strings.Join(body, "\n") + "\n"})
			behind = true
			continue
		case language == "text" && behind:
			blocks[len(blocks)-1].Output = body
		}
		behind = false
	}
	return blocks
}

// Run gives the block to bash, and fails where that does, takes longer than a limit, or does not print what it should. What the
// block leaves running in the background may hold on to the output, so that is a file.
func (b *Block) Run(dir string, env []string, limit time.Duration) (string, error) {
	out, err := os.CreateTemp("", "berth-docs-")
	if err != nil {
		return "", err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", b.Script)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	failed := cmd.Run()
	if failed != nil && ctx.Err() != nil {
		failed = fmt.Errorf("took longer than %s: %w", limit, failed)
	}
	text, err := os.ReadFile(out.Name())
	if err != nil {
		return "", err
	}
	said := string(bytes.ToValidUTF8(text, []byte("?")))
	if failed == nil {
		failed = b.missing(said)
	}
	return said, failed
}

// missing finds the first line that an output lacks.
func (b *Block) missing(output string) error {
	lines := strings.Split(output, "\n")
	at := 0
	for _, want := range b.Output {
		pattern := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimRight(want, " ")), "…", ".*")
		match := regexp.MustCompile("^" + pattern + "$")
		for at < len(lines) && !match.MatchString(strings.TrimRight(lines[at], " \r")) {
			at++
		}
		if at == len(lines) {
			return fmt.Errorf("the page says that it prints %q; it does not come", want)
		}
		at++
	}
	return nil
}
