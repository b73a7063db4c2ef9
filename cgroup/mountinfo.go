package cgroup

import (
	"bytes"
	"strings"
)

// mount is one cgroup line of /proc/self/mountinfo.
type mount struct {
	root     string // what part of the hierarchy is mounted
	point    string
	version  int
	readOnly bool
	options  string // of the superblock: controllers and flags on version 1
}

// parseMountinfo picks the cgroup mounts out of a mountinfo text, whose format
// proc_pid_mountinfo(5) gives. Lines it cannot read are passed over: one odd
// mount must not hide the others. The table grows with every container on the
// host, so that other lines are left after a look at their type.
func parseMountinfo(text []byte) []mount {
	var mounts []mount
	for len(text) > 0 {
		line := text
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			line, text = text[:i], text[i+1:]
		} else {
			text = nil
		}
		// Mount points have their spaces escaped, so the first " - " is the separator.
		i := bytes.Index(line, []byte(" - "))
		if i < 0 {
			continue
		}
		tail := line[i+3:]
		var version int
		switch {
		case bytes.HasPrefix(tail, []byte("cgroup2 ")):
			version = 2
		case bytes.HasPrefix(tail, []byte("cgroup ")), bytes.HasPrefix(tail, []byte("cpuset ")):
			version = 1
		default:
			continue
		}
		head := strings.Fields(string(line[:i]))
		last := strings.Fields(string(tail))
		if len(head) < 6 || len(last) < 2 {
			continue
		}
		mounts = append(mounts, mount{
			root:     unescape(head[3]),
			point:    unescape(head[4]),
			version:  version,
			readOnly: hasToken(head[5], "ro"),
			options:  last[len(last)-1],
		})
	}
	return mounts
}

// unescape undoes the octal escapes (\040 and such) of mountinfo.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) && isOctal(s[i+1]) && isOctal(s[i+2]) && isOctal(s[i+3]) {
			out = append(out, (s[i+1]-'0')<<6|(s[i+2]-'0')<<3|(s[i+3]-'0'))
			i += 3
			continue
		}
		out = append(out, s[i])
	}
	return string(out)
}

func isOctal(c byte) bool { return c >= '0' && c <= '7' }

// hasToken reports whether a comma-separated list contains the token.
func hasToken(list, token string) bool {
	for part := range strings.SplitSeq(list, ",") {
		if part == token {
			return true
		}
	}
	return false
}
