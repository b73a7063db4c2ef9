package typo

import (
	"strings"
	"testing"
)

func TestEdits(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"run", "run", 0}, {"", "run", 3}, {"run", "", 3}, {"runn", "run", 1}, {"rn", "run", 1}, {"ran", "run", 1},
		{"urn", "run", 1}, {"statr", "start", 1}, {"sitting", "kitten", 3}, {"list", "kill", 3},
	} {
		if got := edits(test.a, test.b); got != test.want {
			t.Errorf("from %q to %q: %d, want %d", test.a, test.b, got, test.want)
		}
		if there, back := edits(test.a, test.b), edits(test.b, test.a); there != back {
			t.Errorf("from %q to %q: %d, and back %d", test.a, test.b, there, back)
		}
	}
}

// A word that is too long for all names is not compared with them, which would take as long as both
// together are.
func TestMeantByALongWord(t *testing.T) {
	word := strings.Repeat("a", 1<<20)
	if got := testing.AllocsPerRun(1, func() {
		if meant := Meant(word, []string{"run", "start", "list"}); meant != "" {
			t.Errorf("it is taken for %q", meant)
		}
	}); got > 0 {
		t.Errorf("%v allocations", got)
	}
	if meant := Meant("strt", []string{"run", "start", "list"}); meant != "start" {
		t.Errorf("strt is taken for %q", meant)
	}
}
