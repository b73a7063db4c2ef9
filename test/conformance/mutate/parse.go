package main

import (
	"fmt"
	"strings"
)

// A mutation is one place of the code, and the test that is to notice its damage.
type mutation struct {
	demand         string // how the row of the conformance table begins
	test           string // FOLDER.TestName
	file, old, new string
}

// parse reads the list: blocks of five lines "demand:", "test:", "file:", "old:" and
// "new:", with an empty line between them. What old and new say has its line ends and
// tabs as \n and \t.
func parse(text string) ([]mutation, error) {
	var mutations []mutation
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		var m mutation
		fields := map[string]*string{"demand": &m.demand, "test": &m.test, "file": &m.file, "old": &m.old, "new": &m.new}
		for line := range strings.SplitSeq(block, "\n") {
			if strings.HasPrefix(line, "#") {
				continue
			}
			key, value, _ := strings.Cut(line, ": ")
			field := fields[strings.TrimSuffix(key, ":")]
			if field == nil || *field != "" {
				return nil, fmt.Errorf("mutations.txt: %q is none of demand, test, file, old and new, or there twice", line)
			}
			*field = strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(value)
		}
		if m.demand == "" || m.test == "" || m.file == "" || m.old == "" {
			return nil, fmt.Errorf("mutations.txt: a line is missing of:\n%s", block)
		}
		mutations = append(mutations, m)
	}
	return mutations, nil
}
