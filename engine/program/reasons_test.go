package program

import (
	"strings"
	"testing"
)

func TestParseReasons(t *testing.T) {
	for name, test := range map[string]struct {
		said []string
		want string
	}{
		"nothing":           {nil, ""},
		"an error":          {[]string{"e tmpfs: Unknown parameter 'x'\n"}, "tmpfs: Unknown parameter 'x'"},
		"a warning first":   {[]string{"w slow", "e wrong"}, "wrong"},
		"a warning behind":  {[]string{"e wrong", "w slow"}, "wrong"},
		"only information":  {[]string{"i fine", "w slow"}, "slow"},
		"not to be printed": {[]string{"e \x1b[2J\u009b\n"}, `\x1b[2J\u009b`},
		"a full field":      {[]string{"e " + strings.Repeat("x", ReasonLen-2)}, strings.Repeat("x", ReasonLen-2)},
		"no level":          {[]string{"what"}, ""},
	} {
		record := ReasonsRecord()
		for i, text := range test.said {
			copy(record[ReasonsHead+i*ReasonLen:], text)
		}
		if got, ok := ParseReasons(record); !ok || got != test.want {
			t.Errorf("%s: %q, %v", name, got, ok)
		}
	}
}

func FuzzParseReasons(f *testing.F) {
	f.Add(ReasonsRecord())
	f.Fuzz(func(t *testing.T, record []byte) {
		reason, ok := ParseReasons(record)
		if ok != (len(record) == ReasonsLen && string(record[:ReasonsHead]) == reasonsMagic) {
			t.Errorf("taken: %v", ok)
		}
		for _, r := range reason {
			if r < ' ' || r > '~' {
				t.Errorf("%q would be printed as it is", reason)
			}
		}
	})
}
