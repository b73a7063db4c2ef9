package clidoc

import (
	"bytes"
	"os/exec"
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
	set := &cli.Command{Args: "[LIMIT=VALUE…] [CGROUP…]", Summary: "Set."}
	set.Flags.String(&s, "group", "g", "CONTROLLERS:CGROUP", "a group")
	set.Flags.String(&s, "seccomp", "", "default|FILE", "a profile")
	group := &cli.Command{Summary: "More.", Commands: func() []cli.Sub {
		return []cli.Sub{
			{Name: "inner", Define: func() *cli.Command {
				return &cli.Command{Args: "[COMMAND [ARG...]]", FirstEnds: true, Summary: "Inside."}
			}},
			{Name: "kill", Define: func() *cli.Command { return &cli.Command{Args: "ID [SIGNAL]", Summary: "End it."} }},
			{Name: "set", Define: func() *cli.Command { return set }},
		}
	}}
	root := &cli.Command{Name: "sample", Summary: "A sample.", Commands: func() []cli.Sub {
		return []cli.Sub{{Name: "run", Define: func() *cli.Command { return run }}, {Name: "group", Define: func() *cli.Command { return group }}}
	}}
	root.Flags.String(&s, "root", "", "DIR", "where it is")
	return Tree(root)
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
