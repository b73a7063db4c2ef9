// Package docs runs the commands of the pages in docs/, so that what they tell
// people to type works.
//
// Each ```sh block is a script for bash -eu, all of a page's in one folder, in their
// order. The lines of a ```text block right behind it must come in its output, in
// their order; "…" stands for anything. Environment variables do not pass from block
// to block, files do.
package docs

import (
	"fmt"
	"regexp"
	"strings"
)

// A Block is one script of a page, with what it is to print.
type Block struct {
	Line   int // of its first command
	Script string
	Output []string
}

// parse takes the blocks out of a page.
func parse(text string) []Block {
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
			return fmt.Errorf("the page says that it prints %q; it printed:\n%s", want, output)
		}
		at++
	}
	return nil
}
