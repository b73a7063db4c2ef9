package integration

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The logging program that is shipped gets a container's output by a URI, as
// containerd's clients give it, and hands it on to the journal.
func TestLoggingProgram(t *testing.T) {
	program := filepath.Join(t.TempDir(), "berth-log-journald")
	build := exec.Command("go", "build", "-o", program, "github.com/berth-runtime/berth/shim/examples/berth-log-journald")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	withReleases(t, func(t *testing.T, d *daemon) {
		socket := filepath.Join(d.Dir, "journal")
		journal, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		defer journal.Close()
		// The protocol gives a program no environment of ours, so a script does.
		wrapper := filepath.Join(d.Dir, "logger")
		script := "#!/bin/sh\nBERTH_JOURNAL_SOCKET=" + socket + " exec " + program + " \"$@\"\n"
		if err := os.WriteFile(wrapper, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, scheme := range []string{"binary", "binary-v2"} {
			b := d.define("", sh("echo out; echo err >&2; printf 'no end'"))
			if err := b.create(stdio{out: scheme + "://" + wrapper + "?unit=web", err: ""}); err != nil {
				t.Fatal(err)
			}
			if err := b.start(); err != nil {
				t.Fatal(err)
			}
			b.wait("")
			b.remove() // what is in the pipes by then is not lost
			want := map[string]bool{"MESSAGE=out\nPRIORITY=6\n": true, "MESSAGE=err\nPRIORITY=3\n": true, "MESSAGE=no end\nPRIORITY=6\n": true}
			rest := "SYSLOG_IDENTIFIER=berth-test:" + b.id + "\nCONTAINER_ID=" + b.id + "\nCONTAINER_NAMESPACE=berth-test\nUNIT=web\n"
			for range 3 {
				entry := make([]byte, 4096)
				journal.SetReadDeadline(time.Now().Add(patience))
				n, err := journal.Read(entry)
				if err != nil {
					t.Fatalf("%s: %v; still to come: %v", scheme, err, want)
				}
				message := strings.TrimSuffix(string(entry[:n]), rest)
				if !want[message] {
					t.Errorf("%s: %q", scheme, entry[:n])
				}
				delete(want, message)
			}
		}
	})
}
