package kernel

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestMissing(t *testing.T) {
	err := error(IDMap.Missing(syscall.ENOSYS))
	const want = "this kernel has no idmapped mounts (MOUNT_ATTR_IDMAP): Linux 5.12 has it, and a file system that can (function not implemented)"
	if err.Error() != want {
		t.Errorf("%q\nwant %q", err, want)
	}
	var missing *NotSupported
	if !errors.Is(err, ErrNotSupported) || !errors.Is(err, syscall.ENOSYS) || !errors.As(err, &missing) || missing.Feature != &IDMap {
		t.Errorf("%v is not found as what it is", err)
	}
}

// Each row has what the page's columns need, and each that has a name in Go is on the page once
// and is used by something: a probe, an error or the doctor.
func TestTable(t *testing.T) {
	version := regexp.MustCompile(`^[2-7]\.\d+(\.\d+)?$`)
	rows := map[*Feature]int{}
	names := map[string]bool{}
	for _, s := range Sections {
		for _, f := range s.Features {
			rows[f]++
			if names[f.Name] {
				t.Errorf("%s is there twice", f.Name)
			}
			names[f.Name] = true
			if gone := strings.HasPrefix(f.Least, "gone: "); !gone && !version.MatchString(f.Least) {
				t.Errorf("%s: least kernel %q", f.Name, f.Least)
			}
			if f.Use == "" || f.Without == "" && newerThanFloor(t, f.Least) {
				t.Errorf("%s: what it is for, or what is done without it, is missing", f.Name)
			}
		}
	}
	table, err := os.ReadFile("table.go")
	if err != nil {
		t.Fatal(err)
	}
	code := productCode(t)
	found := 0
	for _, m := range regexp.MustCompile(`(?m)^\t(\w+) += Feature\{`).FindAllStringSubmatch(string(table), -1) {
		found++
		if !strings.Contains(string(table), "&"+m[1]+",") {
			t.Errorf("%s is not on the page", m[1])
		}
		if !regexp.MustCompile(`\bkernel\.` + m[1] + `\b`).MatchString(code) {
			t.Errorf("nothing uses kernel.%s", m[1])
		}
	}
	if found < 10 {
		t.Errorf("only %d features with a name were found", found)
	}
}

func newerThanFloor(t *testing.T, version string) bool {
	numbers := func(text string) (major, minor int) {
		parts := strings.SplitN(text, ".", 3)
		major, err1 := strconv.Atoi(parts[0])
		minor, err2 := strconv.Atoi(parts[1])
		if err1 != nil || err2 != nil {
			t.Fatalf("version %q", text)
		}
		return major, minor
	}
	if strings.HasPrefix(version, "gone: ") {
		return false
	}
	a, b := numbers(version)
	c, d := numbers(Floor)
	return a > c || a == c && b > d
}

// productCode is all Go code of the product but this package's and tests'.
func productCode(t *testing.T) string {
	var all strings.Builder
	for _, dir := range []string{"cgroup", "cmd", "engine", "node", "seccomp", "shim"} {
		err := filepath.WalkDir(filepath.Join("..", "..", dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}
