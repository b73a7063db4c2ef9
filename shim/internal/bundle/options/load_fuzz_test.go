package options

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzLoad: whatever stands in a bundle's options.json, it is an error or options that are the same
// when they were written once more.
func FuzzLoad(f *testing.F) {
	f.Add(`{"binary_name":"/a \"b","root":"/r","systemd_cgroup":true}`)
	f.Add(`{"root":null,"no_pivot_root":1}`)
	f.Add(`{"root":"\u0000\ud800"`)
	f.Add(``)
	f.Fuzz(func(t *testing.T, text string) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		o, err := Load(dir)
		if err != nil {
			return
		}
		if err := o.Save(dir); err != nil {
			t.Fatal(err)
		}
		if again, err := Load(dir); err != nil || again.BinaryName != o.BinaryName || again.Root != o.Root || again.SystemdCgroup != o.SystemdCgroup ||
			again.NoPivotRoot != o.NoPivotRoot || again.NoNewKeyring != o.NoNewKeyring {
			t.Errorf("%q was %+v, and is %+v, %v", text, o, again, err)
		}
	})
}
