package clidoc

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/cmd/internal/cli"
)

func sample() *Node {
	var s string
	var on bool
	run := &cli.Command{Args: "ID", Summary: "Run 'it'.", Help: "First.\n\n.second - \\ paragraph"}
	run.Flags.String(&s, "net", "n", "none|host", "the network: [none] or host's")
	run.Flags.String(&s, "bundle", "b", "DIR", "a folder")
	run.Flags.Bool(&on, "quiet", "q", "say nothing")
	run.Flags.Bool(&on, "old", "", "of old").Hidden = true
	group := &cli.Command{Summary: "More.", Commands: func() []cli.Sub {
		return []cli.Sub{{Name: "inner", Define: func() *cli.Command { return &cli.Command{Args: "[COMMAND]", Summary: "Inside."} }}}
	}}
	root := &cli.Command{Name: "sample", Summary: "A sample.", Commands: func() []cli.Sub {
		return []cli.Sub{{Name: "run", Define: func() *cli.Command { return run }}, {Name: "group", Define: func() *cli.Command { return group }}}
	}}
	root.Flags.String(&s, "root", "", "DIR", "where it is")
	return Tree(root)
}

// complete asks the bash script what could stand at the end of a line.
func complete(t *testing.T, line ...string) string {
	t.Helper()
	script, err := Completion(sample(), "bash")
	if err != nil {
		t.Fatal(err)
	}
	quoted := make([]string, len(line))
	for i, word := range line {
		quoted[i] = quote(word)
	}
	cmd := exec.Command("bash", "--norc", "-c", string(script)+`
sample() { echo one two; }
COMP_WORDS=(`+strings.Join(quoted, " ")+`) COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_sample; echo "${COMPREPLY[*]}"`)
	cmd.Dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(cmd.Dir, "a-file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestBash(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("needs bash")
	}
	for _, test := range []struct {
		line []string
		want string
	}{
		{[]string{"sample", ""}, "run group"},
		{[]string{"sample", "g"}, "group"},
		{[]string{"sample", "group", ""}, "inner"},
		{[]string{"sample", "--root", "run", "r"}, "run"},
		{[]string{"sample", "run", "--"}, "--net --bundle --quiet"},
		{[]string{"sample", "run", "--net", ""}, "none host"},
		{[]string{"sample", "run", "-n", "h"}, "host"},
		{[]string{"sample", "run", "-b", "a"}, "a-file"},
		{[]string{"sample", "run", "-q", ""}, "one two"},
		{[]string{"sample", "run", "t"}, "two"},
	} {
		if got := complete(t, test.line...); got != test.want {
			t.Errorf("%q: %q, want %q", test.line, got, test.want)
		}
	}
}

// What the other shells make of their scripts, where they are installed.
func TestSyntax(t *testing.T) {
	for _, shell := range Shells() {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				t.Skip("needs " + shell)
			}
			script, err := Completion(sample(), shell)
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(shell, "-n")
			cmd.Stdin = bytes.NewReader(script)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s\n%s", err, out, script)
			}
		})
	}
	if _, err := Completion(sample(), "tcsh"); err == nil {
		t.Error("tcsh is known")
	}
}

func TestMan(t *testing.T) {
	pages := append(Man(sample(), "sample 1"), Formats("sample 1")...)
	var names []string
	for _, p := range pages {
		names = append(names, p.File)
		for line := range strings.Lines(string(p.Text)) {
			if line[0] == '.' && !known(line) {
				t.Errorf("%s: a line of text is taken for a request: %q", p.File, line)
			}
		}
		if _, err := exec.LookPath("groff"); err != nil {
			continue
		}
		cmd := exec.Command("groff", "-ww", "-z", "-man", "-Tascii")
		cmd.Stdin = bytes.NewReader(p.Text)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: groff: %v\n%s", p.File, err, out)
		}
	}
	if want := "sample.1 sample-run.1 sample-group.1 sample-group-inner.1"; !strings.HasPrefix(strings.Join(names, " "), want) {
		t.Errorf("%q", names)
	}
	if strings.Contains(string(pages[1].Text), "of old") {
		t.Error("a hidden option is told")
	}
}

func known(line string) bool {
	for _, macro := range []string{".TH ", ".SH ", ".PP\n", ".TP\n", ".B\n", ".nf\n", ".fi\n"} {
		if strings.HasPrefix(line, macro) {
			return true
		}
	}
	return false
}

func TestMarkdown(t *testing.T) {
	text := string(Markdown(sample()))
	for _, want := range []string{"\n## sample run\n", "\n### sample group inner\n", "| `-n, --net none\\|host` |"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
}
