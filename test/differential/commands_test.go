package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed commands.txt
var commandLines string

// states are those that a container can be in when a command meets it. One that is half made is
// what a create leaves that was killed.
var states = []string{"absent", "creating", "half-made", "created", "running", "paused", "stopped"}

// commandTasks are all commands in all states, each in some layout.
func commandTasks(where []Layout, from *rand.Rand) (all []task) {
	for line := range strings.Lines(commandLines) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || onlyLines != "" && !slices.Contains(strings.Split(strings.TrimSpace(onlyLines), "\n"), line) {
			continue
		}
		for _, state := range states {
			all = append(all, task{where[from.IntN(len(where))], job{Command: []string{state, line}}})
		}
	}
	from.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// runCommand brings a container into a state, and calls a command on it.
func (w *worker) runCommand(e engine, words []string) (f facts, err error) {
	w.runs++
	f = facts{}
	state := words[0]
	patience.Store(1)
	lines := []string{`/process/args ["/bin/sleep","1000"]`}
	if state == "creating" || state == "half-made" {
		lines = append(lines, `/hooks/createRuntime [{"path":"/bin/sh","args":["sh","-c","echo > @LOG; exec sleep 100"]}]`)
	}
	s, err := w.prepare(fmt.Sprintf("%s-%d", w.tag, w.runs), lines)
	defer w.clean(e, s)
	if err != nil {
		return f, err
	}
	ended, err := w.bring(e, s, state)
	if err != nil {
		f["state"] = err.Error()
		return f, nil
	}
	n := w.normaliser(e, s)
	args := w.words(s, words[1])
	cmd := w.command(e, nil, args...)
	stdout, _ := w.call(f, "command", cmd)
	f.answer(stdout, args, n)
	if log, err := os.ReadFile(filepath.Join(s.dir, "log")); err == nil {
		f["log"] = shape(string(log))
	}
	if slices.Contains(args, "kill") {
		select { // a signal takes effect in its own time
		case <-ended:
		case <-time.After(200 * time.Millisecond):
		}
	}
	out, _ := w.call(f, "after", w.command(e, nil, "state", s.id))
	var after struct{ Status string }
	json.Unmarshal([]byte(out), &after)
	f["after"] = after.Status
	return n.all(f), nil
}

// bring makes a container and brings it into a state. A channel tells of the end of its first
// process.
func (w *worker) bring(e engine, s *setup, state string) (<-chan string, error) {
	if state == "absent" {
		return nil, nil
	}
	pidFile := filepath.Join(w.root(e), "pid")
	create := w.command(e, nil, "create", "--bundle", s.dir, "--pid-file", pidFile, s.id)
	if state == "creating" || state == "half-made" {
		if err := create.Start(); err != nil {
			return nil, err
		}
		go create.Wait()
		for end := time.Now().Add(deadline); ; time.Sleep(5 * time.Millisecond) { // the hook's file comes from a program that says nothing else
			if _, err := os.Stat(filepath.Join(s.dir, "hooks")); err == nil {
				break
			}
			if time.Now().After(end) {
				return nil, fmt.Errorf("the hook was not called")
			}
		}
		if state == "half-made" {
			return nil, create.Process.Kill()
		}
		return nil, nil
	}
	steps := map[string][]string{"created": {}, "running": {"start"}, "paused": {"start", "pause"}, "stopped": {"start", "kill"}}
	if code := run(create); code != "0" {
		return nil, fmt.Errorf("create: %s", code)
	}
	text, _ := os.ReadFile(pidFile)
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		return nil, err
	}
	ended := reaped(pid)
	for _, step := range steps[state] {
		args := []string{step, s.id}
		if step == "kill" {
			args = append(args, "KILL")
		}
		if code := run(w.command(e, nil, args...)); code != "0" {
			return nil, fmt.Errorf("%s: %s", step, code)
		}
		if step == "start" {
			executed(pid)
		}
		if step == "kill" {
			<-ended
			return nil, nil
		}
	}
	return ended, nil
}

// executed waits until the program runs: what comes before it takes signals in its own way.
func executed(pid int) {
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err != nil || strings.TrimSpace(string(name)) == "sleep" {
			return
		}
	}
}

// words are those of a line, where "\ " is a space within one.
func (w *worker) words(s *setup, line string) []string {
	process := filepath.Join(s.dir, "process.json")
	os.WriteFile(process, []byte(`{"args":["/inside","report"],"cwd":"/etc","env":["PATH=/bin","A=b"],"user":{"uid":1000,"gid":1001,"additionalGids":[9]}}`), 0o644)
	limits := filepath.Join(s.dir, "limits.json")
	os.WriteFile(limits, []byte(`{"pids":{"limit":40}}`), 0o644)
	names := map[string]string{"ID": s.id, "OTHER": s.id + "-other", "FILE": process, "LIMITS": limits, "PIDFILE": filepath.Join(w.dir, "exec-pid"), "LOGFILE": filepath.Join(s.dir, "log")}
	var words []string
	for _, word := range strings.Split(strings.ReplaceAll(line, `\ `, "\x00"), " ") {
		word = strings.ReplaceAll(word, "\x00", " ")
		if other, ok := names[word]; ok {
			word = other
		}
		words = append(words, strings.ReplaceAll(word, "BUNDLE", s.dir))
	}
	return words
}

// answer notes what a command printed: a report whole, of JSON which entries there are, of other
// text what it looks like.
func (f facts) answer(text string, args []string, n *normaliser) {
	if strings.Contains(text, "REPORT ") {
		f.report("inside ", text, n)
		return
	}
	var value any
	if err := json.Unmarshal([]byte(text), &value); err == nil {
		keys := facts{}
		keys.flatten("", value)
		names := slices.Sorted(maps.Keys(keys))
		for _, name := range names {
			if slices.Contains(args, "state") || slices.Contains(args, "list") || slices.Contains(args, "--stats") {
				f["json"+digits.ReplaceAllString(name, "N")] = "there"
			}
		}
		return
	}
	// What is for people to read is not compared, but for whether there is anything.
	f["stdout"] = fmt.Sprint(text != "")
	if slices.Contains(args, "list") || slices.Contains(args, "ps") {
		f["stdout"] = shape(text)
	}
}

// figures are also those within a time, which names it by letters.
var figures = regexp.MustCompile(`\d+`)

var word = regexp.MustCompile(`[^\s"=:{},]+`)

// shape is the beginning of a text's first line, and the form of a log's: words by their names,
// without values.
func shape(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	if strings.HasPrefix(first, "{") {
		var line map[string]any
		if json.Unmarshal([]byte(first), &line) == nil {
			return strings.Join(slices.Sorted(maps.Keys(line)), " ")
		}
	}
	var out bytes.Buffer
	for _, w := range word.FindAllString(first, 8) {
		if strings.ToUpper(w) == w || strings.Contains("time level msg", w) {
			out.WriteString(w + " ")
		}
	}
	return figures.ReplaceAllString(out.String(), "N")
}
