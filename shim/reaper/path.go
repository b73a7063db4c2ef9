package reaper

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// LookPath finds a program as a shell does, for Start. (os/exec, which has the same, would start it
// by itself.)
func LookPath(name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("%q: executable file not found in $PATH", name)
}
