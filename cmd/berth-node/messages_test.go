package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each mistake has its one line, which names the option or the place in the file, and says what
// would do.
func TestMessages(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"key.yaml": "foo: bar\n", "braces.yaml": "{{{\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	fill := strings.NewReplacer("$dir", dir)
	for _, test := range []struct{ line, message string }{
		{"frobnicate", `berth-node: unknown command "frobnicate" (see berth-node --help)`},
		{"plan --frobnicate", "berth-node plan: unknown option --frobnicate (see berth-node plan --help)"},
		{"plan x", `berth-node plan: unexpected argument "x" (see berth-node plan --help)`},
		{"plan -c $dir/nowhere", "read the configuration: open $dir/nowhere: no such file or directory"},
		{"plan -c $dir/key.yaml", "$dir/key.yaml:1: there is no key foo; berth-node plan --help has them all"},
		{"plan -c $dir/braces.yaml", `$dir/braces.yaml: line 1: a key or the closing brace is missing (did not find expected node content)`},
		{"plan --system-reserved foo", `--system-reserved foo: there is no resource "foo"; resources are cpu, memory, pids, ephemeral-storage and hugepages-SIZE, as in hugepages-2Mi`},
		{"plan --system-reserved cpu=x", `--system-reserved cpu: "x" is not a quantity: it does not begin with a number`},
		{"plan --eviction-hard foo", `--eviction-hard foo: there is no eviction signal "foo"; signals are memory.available, nodefs.available and pid.available`},
		{"plan --cgroup-driver foo", `--cgroup-driver: "foo" is none of auto, systemd, cgroupfs`},
		{"plan --cgroup-root rel", `--cgroup-root: "rel" is not an absolute path`},
		{"apply --oom-scores x=y", `--oom-scores x: "y" is no OOM score: it is a whole number from -1000 to 1000`},
		{"apply --kernel-parameters foo", `--kernel-parameters: "foo" is none of off, check, set`},
		{"status --recheck-interval x", `--recheck-interval: "x" is not a time: write it as 30s or 1m30s`},
		{"status --reclaim-pressure 200%", `--reclaim-pressure: "200%" is not a quantity: it is more than the whole`},
		{"undo --state-dir $dir/key.yaml", "create the directory of the record: mkdir $dir/key.yaml: not a directory"},
	} {
		err := command().Execute("berth-node", strings.Fields(fill.Replace(test.line)), io.Discard)
		if err == nil || err.Error() != fill.Replace(test.message) {
			t.Errorf("%s:\n%v\nwant:\n%s", test.line, err, fill.Replace(test.message))
		}
	}
}
