package seccomptool

import (
	"errors"
	"testing"
)

func TestParseLogged(t *testing.T) {
	const head = `audit: type=1326 audit(1700000000.123:456): auid=1000 uid=1000 gid=1000 ses=3 subj=unconfined `
	for line, want := range map[string]string{
		`[ 12.5] ` + head + `pid=4711 comm="sh" exe="/usr/bin/dash" sig=0 arch=c000003e syscall=258 compat=0 ip=0x7f0 code=0x7ffc0000`: "mkdirat (258 of SCMP_ARCH_X86_64) by sh[4711] (/usr/bin/dash): LOG",
		head + `pid=9 comm="x" sig=31 arch=40000003 syscall=20 compat=1 ip=0xf7 code=0x80000000`:                                       "getpid (20 of SCMP_ARCH_X86) by x[9]: KILL_PROCESS",
		`type=SECCOMP msg=audit(1.2:3): pid=9 comm="x" sig=0 arch=c00000b7 syscall=220 code=0x50001`:                                   "clone (220 of SCMP_ARCH_AARCH64) by x[9]: ERRNO EPERM",
		`type=1326 arch=c000003e syscall=1073742336`:                                                                                   "rt_sigaction (1073742336 of SCMP_ARCH_X32)",
		`type=1326 arch=c000003e syscall=9999`:                                                                                         "no known call (9999 of SCMP_ARCH_X86_64)",
	} {
		l, err := ParseLogged(line)
		if err != nil || l.String() != want {
			t.Errorf("%s\ngives %v, %v, want %s", line, l, err, want)
		}
	}
	for _, line := range []string{"", "hello", `type=1400 apparmor="DENIED"`, "type=1326", "type=1326 arch=c000003e syscall=mkdirat"} {
		if l, err := ParseLogged(line); !errors.Is(err, ErrNotSeccomp) {
			t.Errorf("%q gives %v, %v", line, l, err)
		}
	}
	if _, err := ParseLogged("type=1326 arch=12345 syscall=1"); err == nil {
		t.Error("an architecture that is none is taken")
	}
}
