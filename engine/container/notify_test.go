package container

import "testing"

func TestNotifyTranslate(t *testing.T) {
	for _, c := range []struct {
		in, out string
		ready   bool
	}{
		{"READY=1", "READY=1\nMAINPID=42\n", true},
		{"READY=1\nMAINPID=7\nSTATUS=up\n", "READY=1\nMAINPID=42\nSTATUS=up\n", true},
		{"READY=0", "READY=0\n", false},
		{"STATUS=50% = half", "STATUS=50% = half\n", false},
		{"MAINPID=7", "", false},
		{"BARRIER=1", "", false},
		{"FDSTORE=1\nFDNAME=x", "", false},
		{"NOTIFYACCESS=all\nX_OWN=5\nWATCHDOG=1", "WATCHDOG=1\n", false},
		{"", "", false},
		{"READY", "", false},
	} {
		out, ready := translate([]byte(c.in), 42)
		if string(out) != c.out || ready != c.ready {
			t.Errorf("%q: %q, %v; want %q, %v", c.in, out, ready, c.out, c.ready)
		}
	}
	if out, ready := translate([]byte("READY=1\nSTATUS=up"), 0); string(out) != "READY=1\nSTATUS=up\n" || !ready {
		t.Errorf("from who stays: %q, %v", out, ready)
	}
}
