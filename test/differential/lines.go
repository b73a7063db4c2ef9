package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

//go:embed configs.txt
var configLines string

// A section is what touches one thing: a line is one value of one entry.
type section struct {
	name  string
	lines []string
}

func readSections(text string) ([]section, error) {
	var sections []section
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			sections = append(sections, section{name: strings.Trim(line, "[]")})
		case len(sections) == 0:
			return nil, fmt.Errorf("configs.txt:%d: a line before the first section", number)
		default:
			for _, change := range changesOf(line) {
				if err := change.check(); err != nil {
					return nil, fmt.Errorf("configs.txt:%d: %w", number, err)
				}
			}
			s := &sections[len(sections)-1]
			s.lines = append(s.lines, line)
		}
	}
	return sections, nil
}

// A change is one word of a line: a pointer, and the value that it gets.
type change struct{ pointer, value string }

// changesOf are the changes of a line, which " && " joins.
func changesOf(line string) []change {
	var all []change
	for _, text := range strings.Split(line, " && ") {
		pointer, value, _ := strings.Cut(text, " ")
		all = append(all, change{pointer, value})
	}
	return all
}

func (c change) check() error {
	if c.value == "delete" && strings.HasPrefix(c.pointer, "/") || json.Valid([]byte(c.value)) {
		return nil
	}
	return fmt.Errorf("%s: %q is not JSON", c.pointer, c.value)
}

// subject is what two lines must not share to be run together: the entry that both would set.
func subject(line string) string {
	c := changesOf(line)[0]
	if strings.HasSuffix(c.pointer, "/-") {
		// One mount on /b, and one on /t: not two on the same.
		var entry struct{ Destination, Type, Path string }
		json.Unmarshal([]byte(c.value), &entry)
		return c.pointer + entry.Destination + entry.Type
	}
	return c.pointer
}

// singles, pairs and random are the configs, each as its lines.
func singles(sections []section) (all [][]string) {
	seen := map[string]bool{}
	for _, s := range sections {
		for _, line := range s.lines {
			if !seen[line] {
				all = append(all, []string{line})
			}
			seen[line] = true
		}
	}
	return all
}

func pairs(sections []section) (all [][]string) {
	seen := map[string]bool{}
	for _, s := range sections {
		for i, a := range s.lines {
			for _, b := range s.lines[i+1:] {
				if together := a + "\n" + b; subject(a) != subject(b) && !seen[together] {
					seen[together] = true
					all = append(all, []string{a, b})
				}
			}
		}
	}
	return all
}

// random takes three to seven lines of any section.
func random(sections []section, from *rand.Rand) []string {
	var lines []string
	taken := map[string]bool{}
	for n := 3 + from.IntN(5); len(lines) < n; {
		s := sections[from.IntN(len(sections))]
		line := s.lines[from.IntN(len(s.lines))]
		if !taken[subject(line)] {
			taken[subject(line)] = true
			lines = append(lines, line)
		}
	}
	return lines
}
