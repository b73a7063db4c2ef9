package kmsg

import (
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for record, want := range map[string]string{
		"3,512,51409000,-;Memory cgroup out of memory: Killed process 7 (sh)\n":   "51.409s Memory cgroup out of memory: Killed process 7 (sh)",
		"6,1,2,-,caller=T1;one; two\n SUBSYSTEM=pci\n DEVICE=+pci:0000:00:00.0\n": "2µs one; two",
		"no record":                   "",
		"6,1,x,-;text":                "",
		"6,1;text":                    "",
		"6,1,99999999999999999,-;bad": "",
	} {
		got := ""
		if at, text, ok := parse(record); ok {
			got = at.String() + " " + text
		}
		if got != want {
			t.Errorf("%q: %q, want %q", record, got, want)
		}
	}
}

// What can be read of this machine's log can be parsed, in order.
func TestEach(t *testing.T) {
	last, n := time.Duration(0), 0
	err := Each(func(at time.Duration, text string) {
		// Processors write at once, and their clocks differ by a bit.
		if n++; at+time.Second < last || text == "" && n == 0 {
			t.Errorf("%s comes after %s", at, last)
		}
		last = at
	})
	if err != nil {
		t.Skipf("needs a kernel log that can be read: %v", err)
	}
}

// A record is the kernel's, with words of any process in it.
func FuzzParse(f *testing.F) {
	f.Add("6,1,2,-,caller=T1;one; two\n SUBSYSTEM=pci\n")
	f.Fuzz(func(t *testing.T, record string) {
		if at, text, ok := parse(record); at < 0 || ok && strings.Contains(text, "\n") || !ok && text != "" {
			t.Errorf("%q: %s %q %t", record, at, text, ok)
		}
	})
}
