package server

import (
	"os"
	"testing"
)

func TestProgramMappings(t *testing.T) {
	const smaps = `00400000-00500000 r-xp 00000000 08:01 12 /bin/a shim
Rss:                  40 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
00500000-00600000 r--p 00100000 08:01 12 /bin/a shim
Anonymous:             4 kB
VmFlags: rd mr mw me
00600000-00700000 rw-p 00200000 08:01 12 /bin/a shim
Anonymous:             0 kB
00700000-00800000 rw-p 00000000 00:00 0 
Anonymous:             0 kB
00800000-00900000 r--p 00000000 08:01 13 /bin/another shim
Anonymous:             0 kB
7fff00000000-7fff00001000 r-xp 00000000 00:00 0 [vdso]
Anonymous:             0 kB
`
	got := programMappings([]byte(smaps), "/bin/a shim")
	if len(got) != 1 || got[0] != (mapping{0x400000, 0x100000}) {
		t.Errorf("%x", got)
	}
	if got := programMappings([]byte("nothing\n\nof the kind - at all x\n"), "x"); len(got) != 0 {
		t.Errorf("%x", got)
	}
}

// The program goes on when its pages have been let go of.
func TestGiveBack(t *testing.T) {
	if len(ownMappings()) == 0 {
		t.Skip("the program's mappings cannot be told here")
	}
	giveBack()
	if b, err := os.ReadFile("/proc/self/comm"); err != nil || len(b) == 0 {
		t.Errorf("%q, %v", b, err)
	}
}
