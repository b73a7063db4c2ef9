package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// link leaves pictures out: that of docs/performance.md is there once make bench has run.
var link = regexp.MustCompile(`(?m)(?:^|[^!])\[[^\]]*\]\(([^)\s]+)\)`)

// Links between the pages lead somewhere, and so do those to headings.
func TestLinks(t *testing.T) {
	top := filepath.Join("..", "..")
	pages := []string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(top, pattern))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	if len(pages) < 8 {
		t.Fatalf("only %d pages were found", len(pages))
	}
	for _, page := range pages {
		for _, found := range link.FindAllStringSubmatch(withoutCode(read(t, page)), -1) {
			target, heading, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			file := page
			if target != "" {
				file = filepath.Join(filepath.Dir(page), target)
			}
			info, err := os.Stat(file)
			if err != nil {
				t.Errorf("%s: the link to %s leads nowhere", page, found[1])
				continue
			}
			if heading != "" && !info.IsDir() && !hasHeading(read(t, file), heading) {
				t.Errorf("%s: %s has no heading for #%s", page, target, heading)
			}
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// withoutCode leaves out blocks and words of code, where brackets are no links.
func withoutCode(text string) string {
	text = regexp.MustCompile("(?ms)^```.*?^```").ReplaceAllString(text, "")
	return regexp.MustCompile("`[^`\n]*`").ReplaceAllString(text, "")
}

// hasHeading finds a heading by the name that a browser knows it by.
func hasHeading(text, name string) bool {
	for line := range strings.Lines(text) {
		words, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if !ok || !strings.HasPrefix(line, "#") {
			continue
		}
		words = regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(strings.TrimSpace(words)), "")
		if strings.ReplaceAll(words, " ", "-") == name {
			return true
		}
	}
	return false
}

func TestReadmeIsShort(t *testing.T) {
	if n := strings.Count(read(t, filepath.Join("..", "..", "README.md")), "\n"); n >= 150 {
		t.Errorf("the README has %d lines; it is to have less than 150", n)
	}
}
