package harness

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/berth-runtime/berth"

// Engine is the path of the binary under test.
func Engine(t testing.TB) string {
	t.Helper()
	return must(t, engine)
}

// Helper is the path of the helper program, test/inside.
func Helper(t testing.TB) string {
	t.Helper()
	return must(t, helper)
}

// Fault is the path of the program that makes system calls fail, test/fault.
func Fault(t testing.TB) string {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		Skip(t, "needs amd64: test/fault changes registers by hand")
	}
	if _, err := exec.LookPath("go"); err != nil {
		Skip(t, "needs Go to build test/fault: %v", err)
	}
	return must(t, faults)
}

var faults = sync.OnceValues(func() (string, error) { return build("test/fault") })

var engine = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("BERTH_BIN"); path != "" {
		return filepath.Abs(path)
	}
	return build("cmd/berth")
})

var helper = sync.OnceValues(func() (string, error) {
	source := os.Getenv("BERTH_INSIDE")
	if source == "" {
		return build("test/inside")
	}
	return copied(source, "inside")
})

var busybox = sync.OnceValues(func() (string, error) {
	source := os.Getenv("BERTH_BUSYBOX")
	if source == "" {
		var err error
		if source, err = exec.LookPath("busybox"); err != nil {
			return "", fmt.Errorf("%w (Debian has it in the package busybox-static)", err)
		}
	}
	return copied(source, "busybox")
})

// Busybox is the path of a static busybox.
func Busybox(t testing.TB) string {
	t.Helper()
	return must(t, busybox)
}

// copied puts a program into the session, so that root file systems can have hard links to it.
func copied(source, name string) (string, error) {
	data, err := os.ReadFile(source)
	if err != nil {
		return "", err
	}
	target := filepath.Join(session, name)
	return target, os.WriteFile(target, data, 0o755)
}

func must(t testing.TB, get func() (string, error)) string {
	t.Helper()
	path, err := get()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func build(folder string) (string, error) {
	target := filepath.Join(session, filepath.Base(folder))
	return target, Build(folder, target)
}

// Build makes a program of the module as build/scripts/build makes what is released: the same
// entry, the same beginning of Go's.
func Build(folder, target string) error {
	top, err := moduleFolder()
	if err != nil {
		return err
	}
	if err := touchSources(top); err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "berth-overlay-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	overlay, err := exec.Command(filepath.Join(top, "build/scripts/overlay"), temp).Output()
	if err != nil {
		return fmt.Errorf("build/scripts/overlay: %w", err)
	}
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags="+linkerFlags(folder), "-o", target, module+"/"+folder)
	cmd.Dir, cmd.Env = top, append(append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off"), strings.Split(strings.TrimSpace(string(overlay)), "\n")...)
	if strings.HasPrefix(folder, "test/") {
		cmd.Dir = filepath.Join(top, "test") // which is a module of its own
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", folder, err, out)
	}
	return nil
}

func linkerFlags(folder string) string {
	hasEntry := runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64"
	if hasEntry && (folder == "cmd/berth" || folder == "cmd/containerd-shim-berth-v2") {
		return "-E=berth_entry"
	}
	return ""
}

func moduleFolder() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("find the module's folder: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// touchSources looks at each source file of the module. The go command keeps the result of a
// passing test until a file that the test looked at changes; the sources of a binary built by the
// test it would not know of.
func touchSources(top string) error {
	return filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != top {
			return fs.SkipDir
		}
		if ext := filepath.Ext(path); ext == ".go" || ext == ".s" || ext == ".mod" || entry.Name() == "overlay" {
			_, err = os.Stat(path)
		}
		return err
	})
}
