package docs

import (
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	blocks := Parse("# A page\n```sh\none\ntwo\n```\n```text\nout …\n```\n\n```json\n{}\n```\n```sh\nthree\n```\nwords\n```text\nnot its output\n```\n")
	if len(blocks) != 2 || blocks[0].Line != 3 || blocks[0].Script != "one\ntwo\n" || len(blocks[0].Output) != 1 || blocks[1].Script != "three\n" || blocks[1].Output != nil {
		t.Errorf("%+v", blocks)
	}
}

func TestMissing(t *testing.T) {
	for _, test := range []struct {
		want   []string
		output string
		ok     bool
	}{
		{nil, "anything\n", true},
		{[]string{"a", "c"}, "a\nb\nc\n", true},
		{[]string{"c", "a"}, "a\nb\nc\n", false},
		{[]string{"took … seconds"}, "took 3.2 seconds\n", true},
		{[]string{"a+b"}, "aab\n", false},
		{[]string{"a", "a"}, "a\n", false},
	} {
		b := Block{Output: test.want}
		if err := b.missing(test.output); (err == nil) != test.ok {
			t.Errorf("%q in %q: %v", test.want, test.output, err)
		}
	}
}

func TestRun(t *testing.T) {
	for _, test := range []struct {
		block Block
		said  string
		fails string
	}{
		{Block{Script: "echo one; pwd >&2\n", Output: []string{"one", "/tmp"}}, "one\n/tmp\n", ""},
		{Block{Script: "echo one; false; echo two\n"}, "one\n", "exit status 1"},
		{Block{Script: "false | true\n"}, "", "exit status 1"},
		{Block{Script: "echo one\n", Output: []string{"two"}}, "one\n", `"two"`},
		{Block{Script: "sleep 2 &\n"}, "", ""}, // which holds on to the output
	} {
		said, _, err := test.block.Run("/tmp", nil, time.Minute)
		if said != test.said || (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
			t.Errorf("%q: %q, %v", test.block.Script, said, err)
		}
	}
	for script, want := range map[string]string{"cd usr\n": "/usr", "cd usr; cd bin; exec true\n": "/", "(cd usr)\n": "/"} {
		if _, ended, err := (&Block{Script: script}).Run("/", nil, time.Minute); ended != want || err != nil {
			t.Errorf("%q ended in %q and not in %q; %v", script, ended, want, err)
		}
	}
	b := Block{Script: "sleep 1000\n"}
	if _, _, err := b.Run("/tmp", nil, time.Millisecond); err == nil || !strings.Contains(err.Error(), "took longer than 1ms") {
		t.Errorf("no end of a block that takes too long: %v", err)
	}
}
