package attacks

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

// A masked file is the host's null device, inode and all: what root inside does to it must not be
// done to everybody's /dev/null.
func TestMasksLeaveTheHostsNull(t *testing.T) {
	var before unix.Stat_t
	check(t, unix.Stat("/dev/null", &before))
	t.Cleanup(func() {
		unix.Chown("/dev/null", int(before.Uid), int(before.Gid))
		unix.Chmod("/dev/null", before.Mode&0o7777)
		unix.UtimesNano("/dev/null", []unix.Timespec{before.Atim, before.Mtim})
	})
	mode := strconv.FormatUint(uint64(before.Mode&0o777|0o1000), 8)
	masked := []string{"/first", "/second", "/proc/keys"}
	for _, namespace := range []bool{false, true} {
		t.Run("user namespace "+strconv.FormatBool(namespace), func(t *testing.T) {
			b := harness.New(t)
			c := b.Container()
			if namespace {
				harness.NeedNamespace(t, "user")
				harness.UserNamespace(c.Spec)
			}
			c.Spec.Linux.MaskedPaths = masked
			c.Spec.Process.Args = []string{"/inside", "try"}
			refused := []string{}
			for _, path := range masked {
				if !strings.HasPrefix(path, "/proc") {
					c.WriteFile(path, "secret", 0o644)
				}
				refused = append(refused, "chmod="+path+","+mode, "chown="+path+",1,1", "utimes="+path)
				c.Spec.Process.Args = append(c.Spec.Process.Args, "read="+path, "write="+path+",lost")
			}
			c.Spec.Process.Args = append(c.Spec.Process.Args, refused...)
			tried := harness.ParseAttempts(t, c.Run().OK(t).Stdout)
			for _, what := range refused {
				if got := tried[what].Errno; got != "EROFS" {
					t.Errorf("%s: %q, wanted EROFS", what, got)
				}
			}
			for _, path := range masked {
				for _, what := range []string{"read=" + path, "write=" + path + ",lost"} {
					if a := tried[what]; a.Errno != "" || strings.Contains(a.Result, "secret") {
						t.Errorf("%s: %q, %q", what, a.Errno, a.Result)
					}
				}
			}
			var after unix.Stat_t
			check(t, unix.Stat("/dev/null", &after))
			if after.Mode != before.Mode || after.Uid != before.Uid || after.Gid != before.Gid || before.Mtim.Sec != 0 && after.Mtim.Sec == 0 {
				t.Errorf("the host's /dev/null was %o %d:%d and is %o %d:%d, of %v and %v", before.Mode, before.Uid, before.Gid, after.Mode, after.Uid, after.Gid, after.Atim, after.Mtim)
			}
			harness.Report(t, "attacks", len(refused))
		})
	}
}

// With a shared root, a copy of a mount of the host's is its peer, and what is mounted on that copy
// is mounted on the host: a path that is masked twice, or a device or a cgroup that is masked,
// takes that from the host.
func TestMasksOfASharedRoot(t *testing.T) {
	unshare := harness.NeedTool(t, "unshare", "util-linux")
	for _, namespace := range []bool{false, true} {
		t.Run("user namespace "+strconv.FormatBool(namespace), func(t *testing.T) {
			b := harness.New(t)
			c := b.Container("/bin/true")
			if namespace {
				harness.NeedNamespace(t, "user")
				harness.UserNamespace(c.Spec)
			}
			c.WriteFile("/first", "", 0o644)
			c.Spec.Linux.RootfsPropagation = "rshared"
			c.Spec.Mounts = append(c.Spec.Mounts,
				specs.Mount{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup", Options: []string{"ro", "nosuid", "noexec", "nodev"}})
			c.Spec.Linux.MaskedPaths = []string{"/first", "/first", "/first", "/dev/null", "/dev/zero", "/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/pids/cgroup.procs"}
			run := c.Command("run", nil)
			const script = `sort /proc/self/mountinfo > "$0.before"; "$@"; code=$?; sort /proc/self/mountinfo > "$0.after"; diff "$0.before" "$0.after" >&2; exit $code`
			run.Wrap = append(slices.Clone(run.Wrap), unshare, "--mount", "--propagation", "shared", "sh", "-c", script, b.Path("mounts"))
			if r := run.Run().OK(t); r.Stderr != "" {
				t.Errorf("what is mounted on the host has changed:\n%s", r.Stderr)
			}
			harness.Report(t, "attacks", 1)
		})
	}
}
