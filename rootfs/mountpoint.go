package rootfs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// MountPointOf returns the mount point that a host path lies on, as this
// process's mount namespace has it.
func MountPointOf(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("find the mount of %q: %w", path, err)
	}
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", fmt.Errorf("find the mount of %q: %w", path, err)
	}
	return longestMount(string(text), real), nil
}

// longestMount finds the mount point that is the longest one above the path. Its
// fifth field is the mount point, with odd characters as \ooo
// (proc_pid_mountinfo(5)).
func longestMount(mountinfo, path string) string {
	best := "/"
	for line := range strings.Lines(mountinfo) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		point := unescape(fields[4])
		above := point == "/" || path == point || strings.HasPrefix(path, point+"/")
		if above && len(point) > len(best) {
			best = point
		}
	}
	return best
}

func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			b.WriteByte((s[i+1]-'0')<<6 | (s[i+2]-'0')<<3 | (s[i+3] - '0'))
			i += 3
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
