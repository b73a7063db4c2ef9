package containerd2

import (
	"os"
	"strings"
	"testing"
)

// page is a page of the documentation, whose blocks the tests use as they stand.
type page string

func readPage(t testing.TB, name string) page {
	t.Helper()
	b, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return page(b)
}

// block gives the one fenced block of a language that begins with some words.
func (p page) block(t testing.TB, language, words string) string {
	t.Helper()
	var found []string
	for i, part := range strings.Split(string(p), "```") {
		body, is := strings.CutPrefix(part, language+"\n")
		if i%2 == 1 && is && strings.HasPrefix(body, words) {
			found = append(found, body)
		}
	}
	if len(found) != 1 {
		t.Fatalf("the page has %d blocks of %s that begin with %q, want one", len(found), language, words)
	}
	return found[0]
}

// substitute replaces what must be in a text exactly once.
func substitute(t testing.TB, text, old, new string) string {
	t.Helper()
	if n := strings.Count(text, old); n != 1 {
		t.Fatalf("%q is %d times in:\n%s", old, n, text)
	}
	return strings.Replace(text, old, new, 1)
}
