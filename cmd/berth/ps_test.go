package main

import (
	"slices"
	"testing"
)

func TestOwnFormat(t *testing.T) {
	for _, test := range []struct {
		options, rest []string
		format        string
	}{
		{nil, nil, "table"},
		{[]string{"-o", "pid,comm"}, []string{"-o", "pid,comm"}, "table"},
		{[]string{"-ef", "--format", "json"}, []string{"-ef"}, "json"},
		{[]string{"--format=json", "aux"}, []string{"aux"}, "json"},
		{[]string{"-format", "json"}, []string{}, "json"},
		{[]string{"-ef", "--json"}, []string{"-ef"}, "json"},
		{[]string{"-f"}, []string{"-f"}, "table"}, // it is ps's own
		{[]string{"--format"}, []string{"--format"}, "table"},
	} {
		format := "table"
		if rest := ownFormat(test.options, &format); !slices.Equal(rest, test.rest) || format != test.format {
			t.Errorf("%q: %q and %q", test.options, rest, format)
		}
	}
}
