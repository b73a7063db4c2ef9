package main

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/cmd/internal/cli"
)

// each calls a function for every command, with its words.
func each(c *cli.Command, words []string, do func(words []string, c *cli.Command)) {
	if c.Commands == nil {
		do(words, c)
		return
	}
	for _, sub := range c.Commands() {
		each(sub.Command(), append(slices.Clone(words), sub.Name), do)
	}
}

// misspelt is what is said of an option that a command does not have.
func misspelt(t *testing.T, words []string, option string) string {
	t.Helper()
	err := newProgram().command().Execute("berth", append(slices.Clone(words), option, "x", "--", "/bin/false"), io.Discard)
	var usage *cli.UsageError
	var unknown *cli.UnknownFlag
	if !errors.As(err, &usage) || !errors.As(err, &unknown) {
		t.Fatalf("%q %s: %v", words, option, err)
	}
	return err.Error()
}

// A misspelt option runs nothing, and what is named in its place is an option of the same command.
func TestMisspeltOptions(t *testing.T) {
	tried := 0
	each(newProgram().command(), nil, func(words []string, c *cli.Command) {
		for _, f := range c.Flags.List {
			for _, name := range []string{f.Name + "x", f.Name[:len(f.Name)/2] + f.Name[(len(f.Name)+1)/2:] + "q", f.Name[:1] + "qq" + f.Name[1:]} {
				if f.Hidden || c.Flags.Has(name) {
					continue
				}
				tried++
				said := misspelt(t, words, "--"+name)
				_, hint, given := strings.Cut(said, "did you mean --")
				meant, _, _ := strings.Cut(hint, "?")
				if given && !c.Flags.Has(meant) || !given && len(f.Name) > 4 && name == f.Name+"x" {
					t.Errorf("%s", said)
				}
			}
		}
	})
	if tried < 300 {
		t.Errorf("only %d tried", tried)
	}
}

// The words of other programs lead to what does the same, or to the reason why there is none.
func TestWordsOfOtherPrograms(t *testing.T) {
	box := newProgram().boxCommand()
	for name, words := range elsewhere {
		for _, word := range words {
			if said := misspelt(t, []string{"box"}, "--"+word); !box.Flags.Has(name) || !strings.Contains(said, "did you mean --"+name+"?") {
				t.Errorf("%s", said)
			}
		}
	}
	for name, why := range notInBoxes {
		if said := misspelt(t, []string{"box"}, "--"+name); !strings.Contains(said, why) {
			t.Errorf("%s", said)
		}
	}
	for _, test := range []struct{ words, option, want string }{
		{"run", "-it", "berth box has such an option"}, {"run", "-v", "berth box has such an option"}, {"create", "--memory", "berth box has such an option"},
		{"run", "--bundel", "did you mean --bundle?"}, {"box", "--vol", "did you mean --volume?"}, {"box", "--debug", "it is one of berth and goes before box"},
	} {
		if said := misspelt(t, []string{test.words}, test.option); !strings.Contains(said, test.want) {
			t.Errorf("%s, want %s", said, test.want)
		}
	}
	for _, test := range []struct{ word, want string }{{"stop", "kill"}, {"rm", "delete"}, {"ls", "list"}, {"unpause", "resume"}, {"insepct", "inspect"}} {
		err := newProgram().command().Execute("berth", []string{test.word}, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "did you mean "+test.want+"?") {
			t.Errorf("%v, want %s", err, test.want)
		}
	}
}
