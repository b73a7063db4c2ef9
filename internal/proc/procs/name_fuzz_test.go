package procs

import (
	"fmt"
	"reflect"
	"testing"
)

// FuzzName: a process calls itself what it likes (prctl(2), PR_SET_NAME), and changes nothing by
// it but its name: it makes itself no other process, none that has ended, and no clone of ours.
func FuzzName(f *testing.F) {
	for _, name := range []string{"sleep", ") Z 1 (", "0 (0) R 0 0", "a\nb) X 0 0", "((((", "))))", "", " ", "\xff\x1b[2J", "a) S 1 1 1\n", "3) R 1 1 1 1 1 64 ("} {
		f.Add([]byte(name))
	}
	f.Fuzz(func(t *testing.T, name []byte) {
		text := fmt.Appendf(nil, "345 (%s) S 12 7 7 34817 9 4194304 1 2 3 4 150 25 6 7 20 0 1 0 4200 1000 5", name)
		want := &Stat{PID: 345, Parent: 12, Name: string(name), State: 'S', Terminal: 34817, Flags: 4194304, User: 150, System: 25, Start: 4200, Resident: 5}
		if s, err := ParseStat(text); err != nil || !reflect.DeepEqual(s, want) {
			t.Errorf("%q: %+v, %v", text, s, err)
		}
	})
}
