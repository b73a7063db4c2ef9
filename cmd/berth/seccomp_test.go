package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

func TestReadProfile(t *testing.T) {
	const profile = `{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mount"], "action": "SCMP_ACT_ERRNO"}]}`
	for _, test := range []struct{ name, text, err string }{
		{name: "a profile", text: profile},
		{name: "a config", text: `{"ociVersion": "1.0.2", "root": {"path": "x"}, "linux": {"namespaces": [], "seccomp": ` + profile + `}}`},
		{name: "a config without version", text: `{"linux": {"seccomp": ` + profile + `}}`},
		{name: "a config without a profile", text: `{"ociVersion": "1.0.2", "linux": {}}`, err: "has no /linux/seccomp"},
		{name: "Docker's", text: `{"defaultAction": "SCMP_ACT_ERRNO", "archMap": [], "syscalls": []}`, err: `"archMap" belongs to the profile format of Docker`},
		{name: "Podman's", text: `{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [{"names": ["a"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["X"]}}]}`, err: `"includes" belongs to`},
		{name: "broken", text: `{"defaultAction": `, err: "line 1"},
		{name: "another type", text: `{"defaultAction": 1}`, err: "/defaultAction"},
		{name: "a list", text: `[]`, err: "an object"},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "file.json")
			if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, source := range []string{file, "-"} {
				got, err := readProfile(source, strings.NewReader(test.text))
				if test.err != "" {
					if err == nil || !strings.Contains(err.Error(), test.err) || !strings.HasPrefix(err.Error(), source+": ") {
						t.Errorf("%s: %v, want %q", source, err, test.err)
					}
					continue
				}
				if err != nil || got.DefaultAction != specs.ActAllow || len(got.Syscalls) != 1 || got.Syscalls[0].Names[0] != "mount" {
					t.Errorf("%s: %+v, %v", source, got, err)
				}
			}
		})
	}
	if got, err := readProfile("default", nil); err != nil || len(got.Syscalls) == 0 {
		t.Errorf("default: %+v, %v", got, err)
	}
	if _, err := readProfile("/nonexistent/profile", nil); err == nil {
		t.Error("a file that is not there is read")
	}
}
