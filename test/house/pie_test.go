package house

import (
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// What docs/decisions/pie.md says of the two kinds of program that Go's own linker writes. If this
// fails with a newer Go, the reason for which ours are not position-independent may be gone.
func TestPieNeedsAnInterpreter(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.invalid/empty\n\ngo 1.24\n", "main.go": "package main\n\nfunc main() {}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for mode, want := range map[string]struct {
		kind                elf.Type
		interpreter, relros int
	}{
		"exe": {elf.ET_EXEC, 0, 0},
		"pie": {elf.ET_DYN, 1, 1},
	} {
		path := filepath.Join(dir, mode)
		mustGo(t, dir, []string{"CGO_ENABLED=0"}, "build", "-buildmode="+mode, "-o", path)
		f, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		count := func(kind elf.ProgType) int {
			return len(slices.DeleteFunc(slices.Clone(f.Progs), func(p *elf.Prog) bool { return p.Type != kind }))
		}
		if f.Type != want.kind || count(elf.PT_INTERP) != want.interpreter || count(elf.PT_GNU_RELRO) != want.relros {
			t.Errorf("-buildmode=%s gives a %s with %d interpreters and %d RELRO segments, want %+v", mode, f.Type, count(elf.PT_INTERP), count(elf.PT_GNU_RELRO), want)
		}
		for _, p := range f.Progs {
			if both := elf.PF_W | elf.PF_X; p.Flags&both == both {
				t.Errorf("-buildmode=%s has a %s that is writable and executable", mode, p.Type)
			}
		}
	}
}
