package harness

import (
	"regexp"
	"strings"
	"testing"
)

// OK fails the test unless the call succeeded.
func (r Result) OK(t testing.TB) Result {
	t.Helper()
	return r.Exits(t, 0)
}

// Exits fails the test unless the call ended with the given status.
func (r Result) Exits(t testing.TB, code int) Result {
	t.Helper()
	if r.Code != code {
		t.Fatalf("%q: exit status %d, want %d\nstdout: %s\nstderr: %s", r.Args, r.Code, code, r.Stdout, r.Stderr)
	}
	return r
}

// Fails fails the test unless the call ended with status 1, saying one line on standard error that
// has all the given words.
func (r Result) Fails(t testing.TB, words ...string) Result {
	t.Helper()
	return r.FailsWith(t, 1, words...)
}

// FailsWith is Fails for another exit status.
func (r Result) FailsWith(t testing.TB, code int, words ...string) Result {
	t.Helper()
	r.Exits(t, code)
	message := r.Message()
	if message == "" || strings.Contains(strings.TrimSuffix(r.Stderr, "\n"), "\n") {
		t.Errorf("%q: want an error of one line, got %q", r.Args, r.Stderr)
	}
	for _, word := range words {
		if !strings.Contains(message, word) {
			t.Errorf("%q: the error does not say %q: %s", r.Args, word, message)
		}
	}
	return r
}

// Warns fails the test unless the call said a warning with the given words.
func (r Result) Warns(t testing.TB, words ...string) Result {
	t.Helper()
	for _, line := range strings.Split(r.Stderr, "\n") {
		if !strings.Contains(line, "level=warn") {
			continue
		}
		all := true
		for _, word := range words {
			all = all && strings.Contains(line, word)
		}
		if all {
			return r
		}
	}
	t.Errorf("%q: no warning with the words %q: %s", r.Args, words, r.Stderr)
	return r
}

var logLine = regexp.MustCompile(`^time="[^"]*" level=(\w+) msg="?(.*?)"?$`)

// Message is the text of the first error on standard error, out of its log line where it stands in
// one.
func (r Result) Message() string {
	lines := strings.Split(strings.TrimSpace(r.Stderr), "\n")
	for _, line := range lines {
		if m := logLine.FindStringSubmatch(line); m == nil {
			return line
		} else if m[1] == "error" || m[1] == "fatal" {
			return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(m[2])
		}
	}
	return ""
}
