package clidoc

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// asked are the names whose values the program itself says, as this one does. A cgroup's name is
// another's choice.
var asked = []string{"ID", "SIGNAL", "LIMIT=VALUE", "CGROUP", "CONTROLLERS:CGROUP"}

const program = `#!/bin/sh
root=
if [ "$1" = --root ]; then root=$2; shift 2; fi
if [ "$1 $2 $4" != "completion --offer --" ]; then exit 1; fi
case "$3" in
ID) echo one$root; echo two$root ;;
SIGNAL) echo TERM; echo KILL ;;
LIMIT=VALUE) echo memory.max=; echo pids.max= ;;
CGROUP) echo /demo; echo '/$(touch${IFS}expanded)'; echo "/a b" ;;
CONTROLLERS:CGROUP)
	case "$5" in
	*:*) echo cpu:/demo; echo cpu:/other ;;
	*) echo cpu:; echo pids: ;;
	esac ;;
esac
`

// inShell has the script of a shell in a directory with two files, and looks at what the shell
// offers at the end of lines. An offer is what the word would become.
func inShell(t *testing.T, shell, file string, offers func(t *testing.T, dir, line string) []string) {
	t.Helper()
	if _, err := exec.LookPath(shell); err != nil {
		t.Skip("needs " + shell)
	}
	script, err := Completion(sample(), shell, asked...)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{file: string(script), "sample": program, "a-file": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("HOME", dir)
	for _, test := range []struct{ line, want, without string }{
		{"sample ", "run group", "inner"},
		{"sample g", "group", "run"},
		{"sample --root run r", "run", "group"},
		{"sample group ", "inner kill set", "run"},
		{"sample run --n", "--net", "--quiet"},
		{"sample run --net ", "none host", "one"},
		{"sample run --net h", "host", "none"},
		{"sample run -n h", "host", "none"},
		{"sample run -b a", "a-file", "one"},
		{"sample run -q ", "one two", "group"},
		{"sample run t", "two", "one"},
		{"sample run one ", "", "one"},
		{"sample --root /x run ", "one/x two/x", "one"},
		{"sample --root=/x run t", "two/x", "two"},
		{"sample --root /x group kill ", "one/x two/x", "TERM"},
		{"sample group kill one ", "TERM KILL", "one"},
		{"sample group kill one T", "TERM", "KILL"},
		{"sample group kill one TERM ", "", "TERM"},
		{"sample group set ", "memory.max= /demo", "one"},
		{"sample group set m", "memory.max=", "pids.max="},
		{"sample group set memory.max=1 /", "/demo", "memory.max="},
		{"sample group set /demo p", "pids.max=", "/demo"},
		{"sample group set -g ", "cpu: pids:", "cpu:/demo"},
		{"sample group set -g cpu:/d", "cpu:/demo", "cpu:/other"},
		{"sample group set --group cpu:", "cpu:/demo cpu:/other", "cpu:"},
		{"sample group set --seccomp ", "default a-file", "one"},
		{"sample group inner --", "", "--group"},
		{"sample group inner mkd", "mkdir", "one"},
	} {
		got := offers(t, dir, test.line)
		for want := range strings.FieldsSeq(test.want) {
			if !slices.Contains(got, want) {
				t.Errorf("%q: no %q in %q", test.line, want, got)
			}
		}
		if test.without != "" && slices.Contains(got, test.without) || test.without == "" && len(got) > 0 {
			t.Errorf("%q: %q is in %q", test.line, test.without, got)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "expanded")); err == nil {
		t.Error("the name of a cgroup was expanded as a command")
	}
}

// bashOffers is what bash does at a tab: it parts the line by COMP_WORDBREAKS, and calls the
// function. A reply replaces the last part only.
const bashOffers = `
source ./sample.bash
COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDS=() COMP_WORDBREAKS=$' \t\n"\'@><=;|&(:'
text=$1
while [[ -n $text ]]; do
	text=${text#"${text%%[! ]*}"}
	word=${text%%[ =:]*}
	if [[ -z $word && -n $text ]]; then word=${text%%[! =:]*} word=${text%%[!=:]*}; fi
	COMP_WORDS+=("$word") text=${text#"$word"}
done
last=${COMP_WORDS[-1]}
if [[ $1 == *' ' ]]; then COMP_WORDS+=(''); fi
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_sample
if [[ $last == *[=:] || $1 == *' ' ]]; then last=''; fi
whole=${1##* }
for reply in "${COMPREPLY[@]}"; do printf '%s\n' "${whole%"$last"}$reply"; done
`

func TestBashItself(t *testing.T) {
	inShell(t, "bash", "sample.bash", func(t *testing.T, dir, line string) []string {
		t.Helper()
		cmd := exec.Command("bash", "--norc", "-c", bashOffers, "offers", line)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", line, err, out)
		}
		return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' })
	})
}

func TestFishItself(t *testing.T) {
	inShell(t, "fish", "sample.fish", func(t *testing.T, dir, line string) []string {
		t.Helper()
		cmd := exec.Command("fish", "--no-config", "-c", "source sample.fish; complete -C "+quote(line))
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", line, err, out)
		}
		var offers []string
		for one := range strings.Lines(string(out)) {
			word, _, _ := strings.Cut(strings.TrimSpace(one), "\t")
			offers = append(offers, word)
		}
		return offers
	})
}

// zshOffers has an interactive zsh complete the line $1, on a terminal as it wants one. What would
// be added to the line is printed between two marks.
const zshOffers = `
zmodload zsh/zpty
zpty inner zsh -f -i
zpty -w inner "PROMPT= fpath=($PWD \$fpath); autoload -Uz compinit; compinit -u -d $PWD/dump"
zpty -w inner 'compadd() {
	local -a hits
	if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi
	builtin compadd -A hits "$@"
	print -rl -- "" "<"$^hits">"
	builtin compadd "$@"
}'
zpty -w inner 'finish() { print; print -r "<end>"; exit }; comppostfuncs=(finish)'
zpty -w inner 'bindkey "^I" complete-word; print -r "<rea""dy>"'
zpty -r inner text '*<ready>*'
zpty -w -n inner "$1"$'\t'
zpty -r inner text '*<end>*'
print -r -- "$text"
`

func TestZshItself(t *testing.T) {
	inShell(t, "zsh", "_sample", func(t *testing.T, dir, line string) []string {
		t.Helper()
		cmd := exec.Command("timeout", "60", "zsh", "-f", "-c", zshOffers, "offers", line)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", line, err, out)
		}
		var offers []string
		for one := range strings.Lines(string(out)) {
			word, isOffer := strings.CutPrefix(strings.TrimSpace(one), "<")
			if word, whole := strings.CutSuffix(word, ">"); isOffer && whole {
				offers = append(offers, word)
			}
		}
		return offers
	})
}
