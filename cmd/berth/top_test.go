package main

import "testing"

func TestIsPattern(t *testing.T) {
	for name, want := range map[string]bool{
		"web": false, "web-1.a_b+c": false, "web-*": true, "web-?": true, "web-[12]": true, `web\*`: true, "": false,
	} {
		if got := isPattern(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}
