package attacks

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/test/harness"
)

// What another user puts in a directory of images holds up no restore, nor does criu write where a
// link there leads.
func TestRestoreFromADirectoryOfOthers(t *testing.T) {
	criu := harness.NeedCriu(t)
	b := harness.New(t)
	b.Globals = append(b.Globals, "--criu", criu)
	c := b.Container("/bin/sleep", "100000")
	c.Spec.Root.Readonly = true
	c.RunDetached()
	images := b.Path("images")
	c.Command("checkpoint", []string{"--image-path", images}).Run().OK(t)
	c.WaitExit()
	restore := func(images string) harness.Result {
		return inTime(t, "restore", func() harness.Result {
			return c.Command("restore", []string{"--detach", "--image-path", images}).Run()
		})
	}
	for _, name := range []string{"descriptors.json", "inventory.img", "pstree.img"} {
		file := filepath.Join(images, name)
		check(t, os.Rename(file, file+".kept"))
		check(t, unix.Mkfifo(file, 0o666))
		restore(images).FailsWith(t, 1, "--image-path", name, "not a regular file")
		check(t, os.Rename(file+".kept", file))
	}
	said := b.Path("leased")
	holder := exec.Command(harness.Helper(t), "lease", filepath.Join(images, "inventory.img"), said)
	check(t, holder.Start())
	wait.Until(t, "the lease is taken", func() bool { _, err := os.Stat(said); return err == nil })
	restore(images).FailsWith(t, 1, "inventory.img", "lease")
	check(t, holder.Process.Kill())
	_ = holder.Wait()

	pipe := b.Path("pipe")
	check(t, unix.Mkfifo(pipe, 0o666))
	restore(pipe).FailsWith(t, 1, "--image-path", "not a directory")
	c.Command("state", nil).Run().Fails(t, "container does not exist")

	outside := b.WriteFile("outside", "the host's", 0o644)
	for what, put := range map[string]func(log string) error{
		"fifo": func(log string) error { return unix.Mkfifo(log, 0o666) },
		"link": func(log string) error { return os.Symlink(outside, log) },
	} {
		log := filepath.Join(images, "restore.log")
		check(t, errors.Join(os.RemoveAll(log), put(log)))
		pidFile := b.Path("restored.pid")
		inTime(t, "restore with a "+what+" for a log", func() harness.Result {
			return c.Command("restore", []string{"--detach", "--image-path", images, "--pid-file", pidFile}).Run()
		}).OK(t)
		pid, err := os.ReadFile(pidFile)
		check(t, err)
		c.PID, err = strconv.Atoi(string(pid))
		check(t, err)
		c.Delete("--force")
		c.WaitExit()
		if text, err := os.ReadFile(outside); string(text) != "the host's" {
			t.Errorf("a %s for a log: the file outside is %q, %v", what, text, err)
		}
	}
	harness.Report(t, "attacks", 7)
}

// A socket that nobody accepts connections of, whose queue is full, holds up no command that hands
// something over there.
func TestFullSocketHoldsUpNobody(t *testing.T) {
	b := harness.New(t)
	socket := b.Path("full.sock")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	check(t, err)
	defer unix.Close(fd)
	check(t, unix.Bind(fd, &unix.SockaddrUnix{Name: socket}))
	check(t, unix.Listen(fd, 0))
	for err = nil; err == nil; { // till it takes no more
		client, e := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		check(t, e)
		defer unix.Close(client)
		err = unix.Connect(client, &unix.SockaddrUnix{Name: socket})
	}
	if err != unix.EAGAIN {
		t.Fatal(err)
	}
	c := b.Container("/bin/true")
	inTime(t, "create", func() harness.Result { return c.TryCreate("--pidfd-socket", socket) }).FailsWith(t, 1, "--pidfd-socket", "accepted no connection")
	c.Spec.Process.Terminal = true
	inTime(t, "create", func() harness.Result { return c.TryCreate("--console-socket", socket) }).FailsWith(t, 1, "--console-socket", "accepted no connection")
	harness.Report(t, "attacks", 2)
}

// Settings that another user can write to, or that hold up who reads them, are refused: they say
// where root's containers are.
func TestSettingsOfOthers(t *testing.T) {
	b := harness.New(t)
	file := b.WriteFile("etc/berth/berth.toml", "", 0o644)
	own := b.WriteFile("own", "root = \"/nowhere\"\n", 0o644)
	check(t, os.Chown(own, 1234, 1234))
	b.Wrap = []string{"unshare", "-m", "sh", "-c", "mount -t overlay -o lowerdir=" + b.Path("etc") + ":/etc overlay /etc && exec \"$@\"", "sh"}
	if out, err := exec.Command(b.Wrap[0], append(b.Wrap[1:], "true")...).CombinedOutput(); err != nil {
		harness.Skip(t, "cannot lay a directory over /etc: %v: %s", err, out)
	}
	for want, put := range map[string]func() error{
		"not a regular file":        func() error { return unix.Mkfifo(file, 0o644) },
		"another user may write to": func() error { return os.Symlink(own, file) },
		"is the most that is read":  func() error { return errors.Join(os.WriteFile(file, nil, 0o644), os.Truncate(file, 1<<40)) },
	} {
		check(t, errors.Join(os.Remove(file), put()))
		inTime(t, "list", func() harness.Result { return b.Berth("list") }).FailsWith(t, 1, "/etc/berth/berth.toml", want)
	}
	harness.Report(t, "attacks", 3)
}
