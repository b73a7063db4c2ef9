package reliability

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// What docs/kernel-features.md says of kernels that lack something: the calls of it fail as they do
// there.
func TestKernelsThatLackSomething(t *testing.T) {
	for name, lack := range map[string]struct {
		fault   []string
		refused []string // words of the error, where there is nothing else to be done
	}{
		"close_range":                     {fault: []string{"-every", "close_range", "-fail", "ENOSYS"}, refused: []string{"close the setup's descriptors"}},
		"close_range with CLOEXEC":        {fault: []string{"-at", "1:close_range:1", "-fail", "EINVAL"}},
		"MFD_EXEC":                        {fault: []string{"-at", "0:memfd_create:1", "-fail", "EINVAL"}},
		"memfd_create":                    {fault: []string{"-every", "memfd_create", "-fail", "ENOSYS"}, refused: []string{"memfd"}},
		"landlock":                        {fault: []string{"-every", "landlock_create_ruleset", "-fail", "ENOSYS"}},
		"keyrings":                        {fault: []string{"-every", "keyctl", "-fail", "ENOSYS"}},
		"mount_setattr":                   {fault: []string{"-every", "mount_setattr", "-fail", "ENOSYS"}},
		"open_tree":                       {fault: []string{"-every", "open_tree", "-fail", "ENOSYS"}, refused: []string{"/root/path", "function not implemented"}},
		"openat2":                         {fault: []string{"-every", "openat2", "-fail", "ENOSYS"}, refused: []string{"function not implemented"}},
		"clone3":                          {fault: []string{"-every", "clone3", "-fail", "ENOSYS"}, refused: []string{"clone3 is needed", "function not implemented"}},
		"faccessat2":                      {fault: []string{"-every", "faccessat2", "-fail", "ENOSYS"}, refused: []string{"/process/args/0"}},
		"BPF without raising the limit":   {fault: []string{"-at", "0:bpf:1", "-fail", "EPERM"}},
		"reading the limit of open files": {fault: []string{"-every", "getrlimit", "-fail", "ENOSYS"}},
	} {
		t.Run(name, func(t *testing.T) {
			// What has to be read-only is that, by whichever call.
			w := newWorker(t, "/bin/sh", "-c", "if (: > /proc/sys/kernel/domainname) 2> /dev/null; then exit 9; fi")
			w.c.Spec.Process.Env = append(w.c.Spec.Process.Env, "HOME=/") // that it can't be looked up would be a warning besides
			o := w.run("run", nil, nil, lack.fault...)
			switch {
			case lack.refused == nil:
				o.OK(t)
			case !o.hit:
				harness.Skip(t, "this host makes no call of %s", name)
			default:
				o.Fails(t, lack.refused...)
			}
			w.gone(t, o)
			w.end(t)
			harness.Report(t, "fallbacks", 1)
		})
	}
}

// Without cgroup.kill the processes of a container are killed one by one, until none is left.
func TestKernelWithoutCgroupKill(t *testing.T) {
	w := newWorker(t, "/bin/sh", "-c", "for i in 1 2 3 4 5 6 7 8; do /inside hang & done; wait")
	harness.WithoutNamespace(w.c.Spec, "pid")
	w.c.RunDetached()
	// Which of them is asked does not matter: they are in all hierarchies.
	procs := filepath.Join(harness.Hierarchies(t)[0].Dir, w.c.Spec.Linux.CgroupsPath, "cgroup.procs")
	pids := []int{0}
	for len(pids) < 10 {
		text, err := os.ReadFile(procs)
		if err != nil {
			t.Fatal(err)
		}
		pids = pids[:1]
		for _, word := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
		runtime.Gosched()
	}
	o := w.run("delete", []string{"--force"}, nil, "-every", "openat", "-text", "cgroup.kill", "-fail", "ENOENT")
	o.OK(t)
	w.ended(t) // with which the others come to this process
	w.gone(t, outcome{pids: pids})
	w.end(t)
	harness.Report(t, "fallbacks", 1)
}
