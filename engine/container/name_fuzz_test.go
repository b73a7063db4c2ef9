package container

import (
	"fmt"
	"testing"
)

// FuzzName: no process makes itself another one, or one that has ended, by what it calls itself.
func FuzzName(f *testing.F) {
	for _, name := range []string{"sleep", ") Z 1 (", "a\nb) X 0 0", "((((", "))))", ""} {
		f.Add([]byte(name))
	}
	f.Fuzz(func(t *testing.T, name []byte) {
		text := fmt.Appendf(nil, "7 (%s) S 1 7 7 0 -1 4194560 100 0 0 0 0 0 0 0 20 0 1 0 4711 1000 10", name)
		if s, err := parseStat(text); err != nil || s.State != 'S' || s.StartTime != 4711 {
			t.Errorf("%q: %+v, %v", text, s, err)
		}
	})
}
