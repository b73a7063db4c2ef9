package criu

import (
	"strings"
	"testing"
)

func TestLogErrors(t *testing.T) {
	for _, c := range []struct{ name, log, want string }{
		{"none", "(00.1) all is well\n", ""},
		{"one", "(00.000001) Found x\n(00.017073) Error (criu/net.c:12): net: no\n(00.08) Error (criu/cr-dump.c:2111): Dumping FAILED.\n", "net: no (criu/net.c:12)"},
		{"with pid", "(00.2)   1: Error (criu/a.c:1): first\n", "first (criu/a.c:1)"},
		{"the last three, no repetition", "Error (a:1): a\nError (a:1): b\nError (a:1): c\nError (a:1): c\nError (a:1): d\n", "b (a:1); c (a:1); d (a:1)"},
	} {
		if got := LogErrors([]byte(c.log)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestHints(t *testing.T) {
	for said, want := range map[string]string{
		"kerndat_vdso_fill_symtable failed when initializing kerndat. (criu/kerndat.c:1615)":                     "take a newer one",
		"inet: Connected TCP socket, consider using --tcp-established option. (criu/sk-inet.c:188)":              "--tcp-close",
		"A session leader of 5(5) is outside of its pid namespace (criu/x.c:1)":                                  "--shell-job",
		"unix: External socket is used. Consider using --ext-unix-sk option. (criu/sk-unix.c:887)":               "--ext-unix-sk",
		"Some file locks are hold by dumping tasks! You can try --file-locks to dump them. (criu/file-lock.c:1)": "--file-locks",
		"something new": "",
	} {
		if got := Hint(said); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%q: hint %q, want one with %q", said, got, want)
		}
	}
}
