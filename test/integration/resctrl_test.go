package integration

import (
	"strings"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// A container that asks for nothing of resctrl is not looked for there, nor put anywhere.
func TestResctrlIsNotTouched(t *testing.T) {
	strace := harness.NeedTool(t, "strace", "strace")
	b := harness.New(t)
	calls := b.Path("calls")
	b.Wrap = []string{strace, "-f", "-s", "200", "-o", calls, "-e", "trace=%file,write"}
	c := b.Container("/bin/true")
	c.Run().OK(t)
	text := readFile(t, calls)
	if !strings.Contains(text, "config.json") {
		t.Fatalf("the calls were not seen: %s", text)
	}
	for line := range strings.Lines(text) {
		if strings.Contains(line, "resctrl") {
			t.Errorf("it was: %s", line)
		}
	}
}
