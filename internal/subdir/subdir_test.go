package subdir

import (
	"fmt"
	"os"
	"slices"
	"testing"
)

// The directories are those that the library finds, however small the buffer.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	for i := range 300 {
		name := fmt.Sprintf("%s/%d-%0*d", dir, i, i%200, 0)
		if i%3 == 0 {
			if err := os.WriteFile(name, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, top := range []string{dir, "/sys/kernel"} {
		var want []string
		entries, err := os.ReadDir(top)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.IsDir() {
				want = append(want, e.Name())
			}
		}
		for _, size := range []int{512, 16 << 10} {
			f, err := os.Open(top)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Names(int(f.Fd()), make([]byte, size))
			f.Close()
			slices.Sort(got)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %v, %d names, want %d", top, err, len(got), len(want))
			}
		}
	}
	f, err := os.Open("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if names, err := Names(int(f.Fd()), make([]byte, 512)); err == nil {
		t.Errorf("a file has %q", names)
	}
}
