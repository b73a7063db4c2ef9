package docs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// Run gives the block to bash, and fails where that does, takes longer than a limit, or does not
// print what it should. It tells what the block said, and in which directory it ended. What the
// block leaves running in the background may hold on to the output, so that is a file.
func (b *Block) Run(dir string, env []string, limit time.Duration) (said, ended string, err error) {
	files, err := os.MkdirTemp("", "berth-docs-")
	if err != nil {
		return "", dir, err
	}
	defer os.RemoveAll(files)
	out, err := os.Create(filepath.Join(files, "out"))
	if err != nil {
		return "", dir, err
	}
	defer out.Close()
	at := filepath.Join(files, "at")
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", "trap 'pwd > "+at+"' EXIT; "+b.Script)
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
		return "", dir, err
	}
	said = string(bytes.ToValidUTF8(text, []byte("?")))
	if failed == nil {
		failed = b.missing(said)
	}
	if text, err = os.ReadFile(at); err == nil { // else it was killed, or was another program in the end
		dir = strings.TrimSuffix(string(text), "\n")
	}
	return said, dir, failed
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
