package harness

import (
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"testing"
)

var skipped struct {
	sync.Mutex
	tests map[string][]string // by reason
}

// Skip ends the test as not possible here. The reason is printed once more at the end of the whole
// run, so that nobody takes a run that skipped half of itself for a full one.
func Skip(t testing.TB, format string, args ...any) {
	t.Helper()
	reason := fmt.Sprintf(format, args...)
	skipped.Lock()
	if skipped.tests == nil {
		skipped.tests = map[string][]string{}
	}
	skipped.tests[reason] = append(skipped.tests[reason], t.Name())
	skipped.Unlock()
	t.Skip(reason)
}

func printSkips() {
	skipped.Lock()
	defer skipped.Unlock()
	reasons, total := []string{}, 0
	for reason, tests := range skipped.tests {
		reasons = append(reasons, reason)
		total += len(tests)
	}
	if total == 0 {
		return
	}
	sort.Strings(reasons)
	fmt.Fprintf(os.Stderr, "%d skipped:\n", total)
	for _, reason := range reasons {
		fmt.Fprintf(os.Stderr, "  %s: %s\n", reason, strings.Join(skipped.tests[reason], ", "))
	}
}
