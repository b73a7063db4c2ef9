package attacks

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

// The runtime looks up users in /etc/passwd and /etc/group of the image, which can be anything
// there: what would be read without end, waits for ever when it is opened, or is a device whose
// opening may do something.
func TestUsersFileIsATrap(t *testing.T) {
	const notRegular = "it is not a regular file"
	traps := map[string]struct {
		set  func(t *testing.T, path string)
		want string
	}{
		"sparse": {func(t *testing.T, path string) {
			check(t, os.WriteFile(path, nil, 0o644))
			check(t, os.Truncate(path, 64<<30))
		}, "a line of more than 1048576 bytes"},
		"many lines": {func(t *testing.T, path string) {
			check(t, os.WriteFile(path, []byte(strings.Repeat(strings.Repeat("#", 1<<10-1)+"\n", 17<<10)), 0o644))
		}, "more than 16777216 bytes"},
		"fifo":   {func(t *testing.T, path string) { check(t, unix.Mkfifo(path, 0o666)) }, notRegular},
		"socket": {func(t *testing.T, path string) { check(t, unix.Mknod(path, unix.S_IFSOCK|0o666, 0)) }, notRegular},
		"device": {func(t *testing.T, path string) {
			check(t, unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))))
		}, notRegular},
		"folder":                     {func(t *testing.T, path string) { check(t, os.Mkdir(path, 0o755)) }, notRegular},
		"link to the host's device":  {func(t *testing.T, path string) { check(t, os.Symlink("/dev/zero", path)) }, "no such entry"},
		"link to the image's device": {func(t *testing.T, path string) { check(t, os.Symlink("/zero", path)) }, notRegular},
		"link to the kernel's log":   {func(t *testing.T, path string) { check(t, os.Symlink("/proc/kmsg", path)) }, "no such entry"},
		"link to itself":             {func(t *testing.T, path string) { check(t, os.Symlink("passwd", path)) }, "too many levels of symbolic links"},
	}
	for name, trap := range traps {
		t.Run(name, func(t *testing.T) {
			b := harness.New(t)
			c := b.Container("/bin/sleep", "1000")
			check(t, unix.Mknod(c.Path("zero"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))))
			withoutMount(c, "/dev") // or /dev/zero would be there, for exec
			for _, place := range []string{"/dev/pts", "/dev/shm", "/dev/mqueue"} {
				withoutMount(c, place)
			}
			c.Spec.Linux.Resources = nil
			// Of the image, and of a volume on the very file.
			unlink(t, c.Path("etc/passwd"))
			trap.set(t, c.Path("etc/passwd"))
			c.RunDetached() // looks for HOME, and does without
			c.Exec(nil, "/bin/true").OK(t)
			want := trap.want
			if strings.Contains(name, "host's device") {
				want = notRegular // by now there is a /dev/zero, the container's
			}
			c.Exec([]string{"--user", "frob"}, "/bin/true").FailsWith(t, 255, "--user", "/etc/passwd", want)
			c.Exec([]string{"--user", "1:2"}, "/bin/true").OK(t)
			if want != "no such entry" {
				c.Exec([]string{"--user", "1"}, "/bin/true").FailsWith(t, 255, "--user", "/etc/passwd", want)
			}
			// A program that can't be executed is looked at, too.
			link(c, "bin/tool", "/etc/passwd")
			if r := c.Exec(nil, "/bin/tool"); r.Code == 0 {
				t.Errorf("/etc/passwd was executed: %+v", r)
			}
			box := func(words ...string) harness.Result {
				return b.Command(append(append([]string{"box", "--rootfs", c.Rootfs()}, words...), "--", "/bin/true")...).Run()
			}
			box().OK(t)
			if r := box("--user", "frob"); r.Code != 125 || !strings.Contains(r.Stderr, "/etc/passwd") {
				t.Errorf("a box for user frob: %d, %q", r.Code, r.Stderr)
			}
			c.Command("kill", nil, "KILL").Run().OK(t)
			c.WaitExit()
			c.Delete()

			volume := b.Path("passwd")
			if strings.HasPrefix(name, "link") {
				return // the caller's words, followed as the caller would
			}
			trap.set(t, volume)
			unlink(t, c.Path("zero"))
			check(t, os.RemoveAll(c.Path("etc/passwd")))
			c.Spec.Mounts = append(c.Spec.Mounts, bind("/etc/passwd", volume))
			c.Spec.Process.Args = []string{"/bin/true"}
			c.Run().OK(t)
			harness.Report(t, "attacks", 2)
		})
	}
}

// The home of a user is a word of the image's. One that no process can have as a variable does not
// keep the container from running.
func TestHomeIsNoPath(t *testing.T) {
	for name, home := range map[string]string{"NUL": "/home/a\x00b", "200 KB": "/" + strings.Repeat("h", 200<<10)} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			b := harness.New(t)
			c := b.Container("/bin/sh", "-c", "echo $HOME")
			unlink(t, c.Path("etc/passwd"))
			check(t, os.WriteFile(c.Path("etc/passwd"), []byte("frob:x:1000:1000::"+home+":/bin/sh\nbrof:x:1001:1001::/fine:/bin/sh\n"), 0o644))
			for uid, want := range map[uint32]string{1000: "/\n", 1001: "/fine\n"} {
				c.Spec.Process.User.UID = uid
				if got := c.Run().OK(t).Stdout; got != want {
					t.Errorf("HOME of user %d is %q", uid, got)
				}
			}
			c.Spec.Process.Args = []string{"/inside", "hang"}
			c.RunDetached()
			if got := c.Exec([]string{"--user", "frob"}, "/bin/sh", "-c", "echo $HOME").OK(t).Stdout; got != "/\n" {
				t.Errorf("HOME of an exec is %q", got)
			}
			c.Delete("--force")
			c.WaitExit()
			if got := b.Command("box", "--rootfs", c.Rootfs(), "--user", "frob", "--", "/bin/sh", "-c", "echo $HOME").Run().OK(t).Stdout; got != "/\n" {
				t.Errorf("HOME of a box is %q", got)
			}
			harness.Report(t, "attacks", 4)
		})
	}
}
