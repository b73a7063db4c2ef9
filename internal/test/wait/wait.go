package wait

import (
	"testing"
	"time"
)

// patience is how long something may take on a busy machine that takes no time on another.
const patience = time.Minute

// Until looks until something is so, and ends the test if it does not come to be.
func Until(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}
