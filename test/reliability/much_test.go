package reliability

import (
	"os"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

// much gives the container what configs have beyond the usual: so that the calls for it are made.
func much(w *worker) {
	w.b.T.Helper()
	c := w.c
	harness.UserNamespace(c.Spec)
	hook := func(name string) []specs.Hook {
		return []specs.Hook{{Path: "/bin/true", Args: []string{name}}}
	}
	inside := []specs.Hook{{Path: "/bin/busybox", Args: []string{"true"}}}
	c.Spec.Hooks = &specs.Hooks{CreateRuntime: hook("createRuntime"), CreateContainer: hook("createContainer"), StartContainer: inside, Poststart: hook("poststart"), Poststop: hook("poststop")}
	volume := w.b.WriteFile("volume/file", "in the volume", 0o644)
	c.WriteFile("up/file", "copied", 0o644)
	for _, name := range []string{"up", "up/file"} {
		if err := os.Chown(c.Path(name), 100000, 100000); err != nil {
			w.b.T.Fatal(err)
		}
	}
	c.WriteFile("made/by/the/way", "", 0o644) // its root owns nothing of the image
	c.WriteFile("home/work/file", "", 0o644)
	c.Spec.Mounts = append(c.Spec.Mounts,
		specs.Mount{Destination: "/made/by/the/way", Type: "bind", Source: volume, Options: []string{"bind", "ro"}},
		specs.Mount{Destination: "/up", Type: "tmpfs", Source: "tmpfs", Options: []string{"tmpcopyup"}},
		specs.Mount{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup", Options: []string{"ro"}},
	)
	adjust, limit, shares := 100, int64(100_000_000), uint64(512)
	c.Spec.Process.OOMScoreAdj = &adjust
	c.Spec.Process.NoNewPrivileges = true
	c.Spec.Process.Rlimits = []specs.POSIXRlimit{{Type: "RLIMIT_NOFILE", Soft: 100, Hard: 200}}
	c.Spec.Process.Cwd = "/home/work"
	c.Spec.Process.User = specs.User{UID: 1000, GID: 1000, AdditionalGids: []uint32{5}}
	c.Spec.Root.Readonly = true
	c.Spec.Linux.Sysctl = map[string]string{"net.ipv4.ip_forward": "1"}
	c.Spec.Linux.Resources.Memory = &specs.LinuxMemory{Limit: &limit}
	c.Spec.Linux.Resources.CPU = &specs.LinuxCPU{Shares: &shares}
	c.Spec.Linux.Seccomp = &specs.LinuxSeccomp{
		DefaultAction: specs.ActAllow,
		Syscalls:      []specs.LinuxSyscall{{Names: []string{"reboot", "kexec_load"}, Action: specs.ActErrno}},
	}
}
