package container

import (
	"bytes"
	"testing"
)

// What a container says of itself never tells the host about other processes or descriptors.
func FuzzNotifyMessages(f *testing.F) {
	for _, seed := range []string{"READY=1", "READY=1\nMAINPID=1\nSTATUS=up\n", "FDSTORE=1\nFDNAME=x", "=", "\n\n", "READY=1=1", "BARRIER=1", "STATUS=a\x00b\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		out, ready := translate(message, 4711)
		for line := range bytes.Lines(out) {
			name, value, ok := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte("="))
			switch {
			case !ok:
				t.Errorf("a line without a name: %q", line)
			case string(name) == "MAINPID" && string(value) != "4711", bytes.HasPrefix(name, []byte("FD")), string(name) == "BARRIER":
				t.Errorf("%q was passed on of %q", line, message)
			}
		}
		if ready && !bytes.Contains(out, []byte("MAINPID=4711\n")) {
			t.Errorf("ready without a pid: %q", out)
		}
	})
}
