package bundle

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzNotes: whatever has got into the files of a bundle, what is read of them is a process that
// can be, or nothing, and what was read is read again the same once it has been written.
func FuzzNotes(f *testing.F) {
	f.Add("42 137 1700000000000000000", "42\n", `{"linux":{"namespaces":[{"type":"pid"}]}}`, "/other")
	f.Add("-1 0 0", "-1", `{"annotations":null,"process":{"args":["a"]},"linux":{"cgroupsPath":"a.slice:b:c"}}`, "")
	f.Add("42 137 1 more", "+7", `{"linux":{"namespaces":[{"type":"pid","path":""},null]}}`, "\x00")
	f.Fuzz(func(t *testing.T, end, pid, config, member string) {
		dir := t.TempDir()
		for name, text := range map[string]string{endFile: end, "init.pid": pid, "config.json": config, members + "/a": member} {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if n := InitPid(dir); n < 0 || n > 1<<22 { // PID_MAX_LIMIT of include/linux/threads.h
			t.Errorf("init.pid %q is process %d", pid, n)
		}
		if e, known := LoadEnd(dir); known {
			if e.Pid < 1 || e.Pid > 1<<22 || e.Status < 0 || e.Status > 255 {
				t.Errorf("%s %q is %+v", endFile, end, e)
			}
			if err := SaveEnd(dir, e); err != nil {
				t.Fatal(err)
			}
			if again, known := LoadEnd(dir); !known || again != e {
				t.Errorf("%s %q was %+v, and is %+v", endFile, end, e, again)
			}
		}
		_, _ = ReadConfig(dir)
		if found, err := Members(dir); err == nil && found["a"] != member {
			t.Errorf("member %q is read as %q", member, found["a"])
		}
	})
}
