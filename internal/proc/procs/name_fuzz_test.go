package procs

import (
	"fmt"
	"testing"
)

// FuzzName: a process calls itself what it likes (prctl(2), PR_SET_NAME), and changes nothing by it but its name.
func FuzzName(f *testing.F) {
	for _, name := range []string{"sleep", ") Z 1 (", "0 (0) R 0 0", "a\nb", "((((", "))))", "", " ", "\xff\x1b[2J", "a) S 1 1 1\n"} {
		f.Add([]byte(name))
	}
	f.Fuzz(func(t *testing.T, name []byte) {
		text := fmt.Appendf(nil, "345 (%s) S 12 7 7 34817 9 4194304 1 2 3 4 150 25 6 7 20 0 1 0 4200 1000", name)
		number, called, rest, ok := SplitStat(text)
		if !ok || string(number) != "345 " || string(called) != string(name) || string(rest[:6]) != " S 12 " {
			t.Errorf("%q is split into %q, %q, %q", text, number, called, rest)
		}
		p, since, err := parseStat(text)
		if err != nil || p.PID != 345 || p.Parent != 12 || p.State != 'S' || p.Terminal != 34817 || since.Seconds() != 42 || p.Name != string(name) {
			t.Errorf("%q: %+v, %v, %v", text, p, since, err)
		}
	})
}
