package docs

import "testing"

func TestParse(t *testing.T) {
	blocks := parse("# A page\n```sh\none\ntwo\n```\n```text\nout …\n```\n\n```json\n{}\n```\n```sh\nthree\n```\nwords\n```text\nnot its output\n```\n")
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
