package integration

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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

// What failed and was tolerated is told with the entry that it was for, of create and of exec, and
// only with --debug.
func TestLogOfTolerated(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "hang")
	c.Spec.Linux.MaskedPaths = []string{"/proc/keys", "/proc/none"}
	globally(c.Command("create", nil), "--debug", "--log", b.Path("log")).Run().OK(t)
	c.PID = c.State().Pid
	log := readFile(t, b.Path("log"))
	if want := `level=debug msg="tolerated: mask /proc/none: openat2: no such file or directory (config.json: /linux/maskedPaths/1)"`; !strings.Contains(log, want) {
		t.Errorf("no %s in %s", want, log)
	}
	b.Berth("start", c.ID).OK(t)
	// Found in the second directory of PATH.
	globally(c.Command("exec", []string{"--env", "PATH=/none:/bin"}, "true"), "--debug", "--log", b.Path("exec")).Run().OK(t)
	log = readFile(t, b.Path("exec"))
	if want := `level=debug msg="tolerated: exec: \"true\": `; !strings.Contains(log, want) {
		t.Errorf("no %s in %s", want, log)
	}
	globally(c.Command("exec", []string{"--env", "PATH=/none:/bin"}, "true"), "--log", b.Path("quiet")).Run().OK(t)
	if data, err := os.ReadFile(b.Path("quiet")); err == nil && len(data) > 0 {
		t.Errorf("without --debug: %s", data)
	}
	c.Kill("KILL").WaitExit()
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

// What --debug is for: at which step it was, what it was about to do, and what the machine has not
// got.
func TestDebug(t *testing.T) {
	b := harness.New(t)
	for _, format := range []string{"text", "json"} {
		log := b.Path("log." + format)
		debug := func(c *harness.Container, verb string, words ...string) []string {
			t.Helper()
			cmd := c.Command(verb, nil, words...)
			cmd.Args = append([]string{"--debug", "--log", log, "--log-format", format}, cmd.Args...)
			os.Remove(log)
			if r := cmd.Run(); r.Code > 1 || strings.Contains(r.Stderr, "level=debug") {
				t.Fatalf("%s: exit status %d, %q", verb, r.Code, r.Stderr)
			}
			var messages []string
			for line := range strings.Lines(readFile(t, log)) {
				message, level := "", ""
				if format == "json" {
					var entry struct{ Level, Msg, File, Func string }
					harness.Decode(t, line, &entry)
					message, level = entry.Msg, entry.Level
					if entry.File == "" || entry.Func == "" {
						t.Errorf("no file or function in %s", line)
					}
				} else if m := regexp.MustCompile(`^time="[^"]+" level=(\w+) msg="(.*)"$`).FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
					level, message = m[1], strings.ReplaceAll(m[2], `\"`, `"`)
				}
				if message == "" || level == "" {
					t.Errorf("not a line of the log: %q", line)
				}
				messages = append(messages, message)
			}
			return messages
		}
		has := func(messages []string, words ...string) {
			t.Helper()
			for _, message := range messages {
				all := true
				for _, word := range words {
					all = all && strings.Contains(message, word)
				}
				if all {
					return
				}
			}
			t.Errorf("%s: no message with %q in\n%s", format, words, strings.Join(messages, "\n"))
		}
		c := b.Container("/bin/true")
		c.Spec.Hostname = "debugged"
		messages := debug(c, "create")
		for _, words := range [][]string{
			{"read and check config.json …"}, {"plan: "}, {"serve the init until it is ready"},
			{"mounts: ", "/proc", "config.json: /mounts/0"}, {"namespaces: ", "pid"}, {"debugged", "config.json: /hostname"}, {"process: ", "/bin/true"},
		} {
			has(messages, words...)
		}
		if !harness.HasCapability(t, unix.CAP_SYS_RESOURCE) {
			has(messages, "the host lacks", "CAP_SYS_RESOURCE")
		}
		has(debug(c, "start"), "pass the gate …")
		has(debug(c, "delete", "--force"), "remove the cgroup …")
		b.ReapOrphans()
		// The step that failed is the one that began last.
		c = b.Container("/no/such/program")
		messages = debug(c, "create")
		has(messages, "/no/such/program", "no such file or directory")
		has(messages, "serve the init until it is ready …")
	}
	if r := b.Berth("list"); strings.Contains(r.Stderr, "debug") {
		t.Errorf("without --debug: %q", r.Stderr)
	}
}
