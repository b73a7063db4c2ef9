package criu

import (
	"bytes"
	"strings"
)

// LogErrors returns the last lines of criu's log that tell of errors, as one
// text, and "" where there are none: the response itself says next to nothing.
func LogErrors(data []byte) string {
	const lines = 3
	var list []string
	for line := range bytes.Lines(data) {
		if text, ok := errorLine(string(line)); ok && (len(list) == 0 || list[len(list)-1] != text) {
			list = append(list, text)
		}
	}
	if len(list) > lines {
		list = list[len(list)-lines:]
	}
	return strings.Join(list, "; ")
}

// errorLine takes what a line such as "(00.012) 19: Error (criu/x.c:260): text"
// says, or reports false.
func errorLine(line string) (string, bool) {
	at := strings.Index(line, "Error (")
	if at < 0 {
		return "", false
	}
	text := strings.TrimSpace(line[at+len("Error "):])
	if place, rest, ok := strings.Cut(text, "): "); ok {
		text = rest + " " + place + ")"
	}
	// That it failed is known.
	if strings.HasPrefix(text, "Dumping FAILED.") || strings.HasPrefix(text, "Restoring FAILED.") || strings.HasPrefix(text, "Pre-dumping FAILED.") {
		return "", false
	}
	return text, true
}

// Hint says what to do about known failures, by what criu has said of them.
func Hint(said string) string {
	switch {
	case strings.Contains(said, "vdso"):
		return "this criu does not know the vDSO of this kernel: take a newer one; criu 3.17 fails on Linux 6.18, and 4.1 works"
	case strings.Contains(said, "iptables"), strings.Contains(said, "Locking network failed"):
		return "criu locks the network with iptables or nftables, which it has to find and the kernel to support"
	case strings.Contains(said, "--tcp-established"), strings.Contains(said, "Connected TCP socket"):
		return "the container has open TCP connections: use --tcp-established to keep, or --tcp-close to close them"
	case strings.Contains(said, "--shell-job"), strings.Contains(said, "dangling tty"), strings.Contains(said, "session leader"):
		return "a process belongs to a terminal or session outside of the container: use --shell-job"
	case strings.Contains(said, "--ext-unix-sk"), strings.Contains(said, "external unix"), strings.Contains(said, "External socket is used"):
		return "a process is connected to a unix socket outside of the container: use --ext-unix-sk"
	case strings.Contains(said, "--file-locks"):
		return "a process holds file locks: use --file-locks"
	case strings.Contains(said, "--link-remap"):
		return "a process has a deleted file open: use --link-remap"
	case strings.Contains(said, "rseq"):
		return "this kernel does not let criu read restartable sequences (PTRACE_GET_RSEQ_CONFIGURATION, Linux 5.13)"
	}
	return ""
}
