package attacks

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// leaked are descriptors that the caller has open and that are not close-on-exec: the host's root,
// a directory that is nobody's, and a file. So many that the low numbers, which the init takes for
// its own, are not all of them.
func leaked(t *testing.T, o *outside) []*os.File {
	t.Helper()
	var files []*os.File
	for i := range 12 {
		name := []string{"/", o.dir, o.dir + "/secret"}[i%3]
		f, err := os.Open(name)
		check(t, err)
		t.Cleanup(func() { f.Close() })
		files = append(files, f)
	}
	return files
}

// CVE-2024-21626: the working directory is a descriptor that the runtime, or its caller, has left
// open.
func TestWorkingDirectoryIsADescriptor(t *testing.T) {
	b := harness.New(t)
	o := newOutside(b, map[string]string{"secret": "the host's"})
	files := leaked(t, o)
	c := b.Container("/inside", "try", "read=secret", "read=../../../../../.."+o.dir+"/secret")
	c.Extra = files
	running := b.Container("/inside", "hang").RunDetached()
	running.Extra = files
	attacks := 0
	try := func(cwd string, call func() harness.Result) {
		attacks++
		r := call()
		if r.Code != 0 {
			if strings.Contains(r.Stdout, "the host's") {
				t.Errorf("cwd %s: %s", cwd, r.Stdout)
			}
			return
		}
		for what, got := range harness.ParseAttempts(t, r.Stdout) {
			if got.Errno == "" {
				t.Errorf("cwd %s: %s gave %q", cwd, what, got.Result)
			}
		}
	}
	for fd := range 16 {
		for _, form := range []string{"/proc/self/fd/%d", "/proc/thread-self/fd/%d", "/proc/1/fd/%d", "/link%d"} {
			cwd := fmt.Sprintf(form, fd)
			if strings.HasPrefix(cwd, "/link") {
				link(c, cwd[1:], fmt.Sprintf("/proc/self/fd/%d", fd))
				link(running, cwd[1:], fmt.Sprintf("/proc/self/fd/%d", fd))
			}
			c.Spec.Process.Cwd = cwd
			if fd > 2 {
				try(cwd, func() harness.Result { return c.Run() })
			}
			try(cwd, func() harness.Result {
				return running.Exec([]string{"--cwd", cwd}, "/inside", "try", "read=secret", "read=../../../../../.."+o.dir+"/secret")
			})
		}
	}
	running.Delete("--force")
	running.WaitExit()
	o.untouched()
	harness.Report(t, "attacks", attacks)
}

// The same by the program's path, which is resolved when it is executed.
func TestProgramBehindADescriptor(t *testing.T) {
	b := harness.New(t)
	// A program that the kernel executes once it is reached.
	o := newOutside(b, map[string]string{"secret": "#!/bin/sh\necho \"the host's\"\n"})
	check(t, os.Chmod(o.dir+"/secret", 0o755))
	o.kept = fingerprint(t, o.dir)
	c := b.Container("/bin/true")
	c.Extra = leaked(t, o)
	c.Run().OK(t) // it is not for the descriptors that none is executed
	attacks := 0
	for fd := 3; fd < 18; fd++ {
		for _, form := range []string{"/proc/self/fd/%d/secret", "/proc/self/fd/%d" + o.dir + "/secret", "/proc/self/fd/%d"} {
			attacks++
			c.Spec.Process.Args = []string{fmt.Sprintf(form, fd)}
			if r := c.Run(); r.Code == 0 || strings.Contains(r.Stdout, "the host's") {
				t.Errorf("%s was executed: %q", c.Spec.Process.Args[0], r.Stdout)
			}
		}
	}
	o.untouched()
	harness.Report(t, "attacks", attacks)
}
