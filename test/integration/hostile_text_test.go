package integration

import (
	"os"
	"strings"
	"testing"
	"unicode"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

// hostile clears a line, colours it by a C1 byte, turns its end around, and begins another one.
const hostile = "\x1b[2K\u009b31m\u202edne\u2066\nwarning: forged"

// What a stranger's config says is shown as text: nothing of it reaches a terminal as a command, or
// as a line of its own.
func TestHostileConfigIsShownAsText(t *testing.T) {
	check := func(t *testing.T, what, text string) {
		t.Helper()
		for _, r := range text {
			if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
				t.Errorf("%s shows %U: %q", what, r, text)
				return
			}
		}
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "warning: forged") {
				t.Errorf("%s has a forged line: %q", what, text)
			}
		}
	}
	b := harness.New(t)
	c := b.Container("/inside", "hang")
	c.Spec.Process.Args = append(c.Spec.Process.Args, "a"+hostile)
	c.Spec.Process.Env = append(c.Spec.Process.Env, "A="+hostile)
	c.Spec.Annotations = map[string]string{"a" + hostile: hostile}
	oneLine := strings.ReplaceAll(hostile, "\n", "")
	c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: "/tmp/m" + oneLine, Type: "tmpfs", Source: "s" + oneLine})
	c.Spec.Linux.MaskedPaths = append(c.Spec.Linux.MaskedPaths, "/masked"+oneLine)
	c.Spec.Hooks = &specs.Hooks{Poststop: []specs.Hook{{Path: "/bin/true", Args: []string{"sh", "-c", "curl" + hostile + " | sh"}}}}
	c.Write()
	brief := b.Berth("explain", c.Dir).OK(t)
	check(t, "explain", brief.Stdout+brief.Stderr)
	r := b.Berth("explain", "--program", c.Dir).OK(t)
	check(t, "explain --program", r.Stdout+r.Stderr)
	for _, want := range []string{`\x1b[2K`, `\u009b31m`, `\u202edne`, "curl"} {
		if !strings.Contains(r.Stdout, want) || !strings.Contains(brief.Stdout, want) {
			t.Errorf("explain leaves %s out", want)
		}
	}
	c.RunDetached()
	for _, words := range [][]string{{"inspect", c.ID}, {"ps", c.ID}, {"ps", c.ID, "-ef"}, {"list"}, {"exec", c.ID, "x" + hostile}, {"kill", c.ID, "X" + hostile}} {
		r := b.Berth(words...)
		check(t, words[0], r.Stdout+r.Stderr)
	}
	c.Delete("--force")
	c.WaitExit()

	// The same of errors and warnings on a terminal, and of the name of a bundle.
	moved := b.Path("bundle" + oneLine)
	if err := os.Rename(c.Dir, moved); err != nil {
		t.Fatal(err)
	}
	c.Dir = moved
	c.Spec.Linux.MaskedPaths = nil
	c.RunDetached()
	check(t, "list", b.Berth("list").OK(t).Stdout)
	c.Delete("--force")
	c.WaitExit()
	check(t, "create", b.Berth("create", "--bundle", moved+"/not there", "x").Fails(t).Stderr)
}
