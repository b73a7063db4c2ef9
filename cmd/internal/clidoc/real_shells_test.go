package clidoc

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// inShell has the script of a shell in a folder with two files, and gives what the shell offers at
// the end of lines.
func inShell(t *testing.T, shell, file string, offers func(t *testing.T, dir, line string) []string) {
	t.Helper()
	if _, err := exec.LookPath(shell); err != nil {
		t.Skip("needs " + shell)
	}
	script, err := Completion(sample(), shell)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// The program itself, which tells its containers.
	for name, text := range map[string]string{file: string(script), "sample": "#!/bin/sh\necho one; echo two\n", "a-file": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("HOME", dir)
	for _, test := range []struct{ line, want, without string }{
		{"sample ", "run group", "inner"},
		{"sample g", "group", "run"},
		{"sample group ", "inner", "run"},
		{"sample run --n", "--net", "--quiet"},
		{"sample run --net ", "none host", "one"},
		{"sample run --net h", "host", "none"},
		{"sample run -b a", "a-file", "one"},
		{"sample run -q ", "one two", "group"},
		{"sample run t", "two", "one"},
	} {
		got := offers(t, dir, test.line)
		for want := range strings.FieldsSeq(test.want) {
			if !slices.Contains(got, want) {
				t.Errorf("%q: no %q in %q", test.line, want, got)
			}
		}
		if slices.Contains(got, test.without) {
			t.Errorf("%q: %q is in %q", test.line, test.without, got)
		}
	}
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
