package view

import (
	"strconv"
	"strings"
)

// ParseMountinfo reads the lines of /proc/PID/mountinfo. Lines that are not of proc(5)'s form are
// left out.
func ParseMountinfo(text string) []Mount {
	var mounts []Mount
	for _, line := range strings.Split(text, "\n") {
		before, after, found := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !found || len(left) < 6 || len(right) < 2 {
			continue
		}
		m := Mount{
			Device: left[2], Root: unescape(left[3]), Target: unescape(left[4]),
			Options: strings.Split(left[5], ","), Optional: left[6:],
			Type: right[0], Source: unescape(right[1]),
		}
		m.ID, _ = strconv.Atoi(left[0])
		m.Parent, _ = strconv.Atoi(left[1])
		if len(right) > 2 {
			m.Super = strings.Split(right[2], ",")
		}
		mounts = append(mounts, m)
	}
	return mounts
}

// unescape undoes the octal escapes that the kernel writes for space, tab, newline and backslash.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
