package docs

import (
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"testing"
)

// unwanted are words that hide what people search for, with what to write instead. Only whole words
// count, so that the names of tests and of identifiers are free.
var unwanted = regexp.MustCompile(`(?i)\b(for want of|whoever|whomever|somebody|anybody|folders?)\b`)

// vague are words for people where a comment speaks of processes, callers and owners. The user
// nobody is meant where its number, or what says so, follows.
var vague = regexp.MustCompile(`(?i)\b(for want of|whoever|whomever|somebody|anybody|nobody\b([^ ]| [^(]|$))`)

const instead = "say \"OOM-killed\", \"missing\", \"a process\", \"the owner\", \"the caller\", \"directory\""

// quoted finds the strings of a line of Go, in which help and messages are.
var quoted = regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`")

// The pages, the help, the messages and the comments are in the words of the field.
func TestWords(t *testing.T) {
	list := exec.Command("git", "ls-files", "*.md", "*.go", "build/deploy", "build/packaging", "Makefile")
	list.Dir, list.Stderr = "../..", os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Skip("the list of files needs git and a clone: ", err)
	}
	pages, sources := 0, 0
	for _, name := range strings.Fields(string(out)) {
		if strings.HasSuffix(name, ".md") && room(name) == "test" || name == "build/packaging/copyright" {
			continue // the licences are others' words
		}
		isGo := path.Ext(name) == ".go"
		if r := room(name); isGo && (r == "test" || strings.HasPrefix(name, "shim/test/") || strings.HasSuffix(name, "_test.go")) {
			continue // what tests say, they say to us
		}
		text, err := os.ReadFile("../../" + name)
		if err != nil {
			continue // removed, and not committed yet
		}
		if isGo {
			sources++
		} else {
			pages++
		}
		for i, line := range strings.Split(string(text), "\n") {
			if isGo {
				if _, comment, _ := strings.Cut(line, "//"); vague.MatchString(comment) {
					t.Errorf("%s:%d: %q: %s", name, i+1, vague.FindString(comment), instead)
				}
				line = strings.Join(quoted.FindAllString(line, -1), " ")
			}
			if word := unwanted.FindString(line); word != "" {
				t.Errorf("%s:%d: %q: %s", name, i+1, word, instead)
			}
		}
	}
	if pages < 50 || sources < 400 {
		t.Errorf("only %d pages and %d sources were looked at", pages, sources)
	}
}

func TestUnwanted(t *testing.T) {
	for text, want := range map[string]bool{"nobody is left": true, "of nobody.": true, "said by nobody": true, "and of nobody (65534).": false, "Somebody's": true} {
		if vague.MatchString(text) != want {
			t.Errorf("%q is vague: %v, want %v", text, !want, want)
		}
	}
	for _, text := range []string{"killed for want of memory", "the state folder", "Whoever makes it", "somebody's"} {
		if !unwanted.MatchString(text) {
			t.Errorf("%q passes", text)
		}
	}
	for _, text := range []string{"TestRootFolderIsALink", "directory", "everybody"} {
		if word := unwanted.FindString(text); word != "" {
			t.Errorf("%q in %q", word, text)
		}
	}
}
