package launch

import (
	"fmt"
	"testing"
)

// FuzzName: a program that calls itself anything, our init's name with what follows it in stat too, is not taken for that.
func FuzzName(f *testing.F) {
	for _, name := range []string{"3", "3) R 1 1 1 1 1 64 (", "a\nb", "))))", ""} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		called, flags := nameAndFlags(fmt.Sprintf("7 (%s) S 1 7 7 0 -1 4194560 100 0", name))
		if called != name || flags != 4194560 {
			t.Errorf("%q with flags 4194560 is read as %q with %d", name, called, flags)
		}
	})
}
