package integration

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/berth-runtime/berth/test/harness"
)

var textLine = regexp.MustCompile(`^time="([^"]+)" level=error msg="?(.+?)"?$`)

func TestErrorsWithoutALogGoToStderrAsText(t *testing.T) {
	b := harness.New(t)
	r := b.Berth("state", "nobody")
	m := textLine.FindStringSubmatch(strings.TrimSuffix(r.Stderr, "\n"))
	if r.Code != 1 || m == nil {
		t.Fatalf("exit status %d, stderr %q", r.Code, r.Stderr)
	}
	if _, err := time.Parse(time.RFC3339, m[1]); err != nil {
		t.Error(err)
	}
	if r.Stdout != "" {
		t.Errorf("stdout %q", r.Stdout)
	}
}

func TestLogText(t *testing.T) {
	b := harness.New(t)
	log := b.Path("log")
	r := b.Berth("--log", log, "state", "nobody")
	// The bare message for who reads along, the line for the file.
	message := strings.TrimSuffix(r.Stderr, "\n")
	if r.Code != 1 || !strings.Contains(message, "container does not exist") || strings.Contains(message, "level=") || strings.Contains(message, "\n") {
		t.Errorf("exit status %d, stderr %q", r.Code, r.Stderr)
	}
	m := textLine.FindStringSubmatch(strings.TrimSuffix(readFile(t, log), "\n"))
	if m == nil || strings.ReplaceAll(m[2], `\"`, `"`) != message {
		t.Errorf("log %q, message %q", readFile(t, log), message)
	}
}

func TestLogJSON(t *testing.T) {
	b := harness.New(t)
	log := b.Path("log.json")
	// The file is appended to: clients hand the same one to each call.
	var messages []string
	for range 2 {
		r := b.Berth("--log", log, "--log-format", "json", "state", "no\"body\\").Fails(t)
		messages = append(messages, strings.TrimSuffix(r.Stderr, "\n"))
	}
	lines := strings.Split(strings.TrimSuffix(readFile(t, log), "\n"), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines: %q", len(lines), lines)
	}
	for i, line := range lines {
		var entry map[string]string
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if entry["level"] != "error" || entry["msg"] != messages[i] {
			t.Errorf("entry %v, message %q", entry, messages[i])
		}
		if _, err := time.Parse(time.RFC3339, entry["time"]); err != nil {
			t.Error(err)
		}
	}
}

func TestLogDebug(t *testing.T) {
	b := harness.New(t)
	log := b.Path("log.json")
	b.Berth("--debug", "--log", log, "--log-format", "json", "state", "nobody").Exits(t, 1)
	for _, line := range strings.Split(strings.TrimSuffix(readFile(t, log), "\n"), "\n") {
		var entry struct{ Level, Msg, File, Func string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if entry.Level == "" || entry.File == "" || entry.Func == "" {
			t.Errorf("line %q has no level, file or func", line)
		}
	}
}

func TestLogOfSuccessIsEmpty(t *testing.T) {
	b := harness.New(t)
	log := b.Path("log")
	c := b.Container("/bin/true")
	b.Globals = append(b.Globals, "--log", log)
	if r := c.Run().OK(t); r.Stderr != "" || r.Stdout != "" {
		t.Errorf("stdout %q, stderr %q", r.Stdout, r.Stderr)
	}
	if data, err := os.ReadFile(log); err == nil && len(data) > 0 {
		t.Errorf("log %q", data)
	}
}

func TestLogFormatUnknown(t *testing.T) {
	b := harness.New(t)
	b.Berth("--log-format", "xml", "list").Fails(t, "xml")
}

func TestLogThatCannotBeOpened(t *testing.T) {
	b := harness.New(t)
	b.Berth("--log", b.Path("no/such/log"), "list").Fails(t, "no such file or directory")
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
