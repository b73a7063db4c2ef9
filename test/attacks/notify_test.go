package attacks

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// The socket by which a container tells systemd that it is ready is in a directory of the host's
// /run. A process can write to the socket, and to nothing else; and one that may mount, and so may
// write to the directory, leads no command anywhere with what it puts there.
func TestNotifySocketIsExchanged(t *testing.T) {
	for name, mayMount := range map[string]bool{"ordinary process": false, "process that may mount": true} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			b := harness.New(t)
			o := newOutside(b, map[string]string{"file": "the host's"})
			listener, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: b.Path("systemd"), Net: "unixgram"})
			check(t, err)
			defer listener.Close()
			defer os.Remove(b.Path("systemd"))
			c := b.Container("/inside", "notify", "READY=1")
			c.Env = []string{"NOTIFY_SOCKET=" + b.Path("systemd")}
			c.Spec.Process.User.UID = 0
			if mayMount {
				caps := append([]string{"CAP_SYS_ADMIN"}, harness.DefaultCaps...)
				c.Spec.Process.Capabilities.Bounding, c.Spec.Process.Capabilities.Effective, c.Spec.Process.Capabilities.Permitted = caps, caps, caps
			}
			c.Create().Start()
			message := make([]byte, 100)
			n, err := listener.Read(message)
			check(t, err)
			if !strings.HasPrefix(string(message[:n]), "READY=1\nMAINPID=") {
				t.Errorf("systemd is told %q", message[:n])
			}
			const socket = "/run/host/notify/socket"
			tries := []string{"unlink=" + socket, "create=/run/host/notify/full", "mkdir=/run/host/notify/deep"}
			if mayMount {
				tries = append([]string{"remount-rw=/run/host/notify"}, tries...)
			}
			tried := harness.ParseAttempts(t, c.Exec(nil, append([]string{"/inside", "try"}, tries...)...).OK(t).Stdout)
			if mayMount {
				harness.Allowed(t, tried, tries...)
				c.Exec(nil, "/bin/sh", "-c", "ln -s "+filepath.Join(o.dir, "file")+" "+socket+" && ln -s "+o.dir+" /run/host/notify/deep/link").OK(t)
			} else {
				for _, try := range tries {
					harness.Refused(t, tried, try, "EROFS")
				}
			}
			c.Command("start", nil).Run().Fails(t, "already running")
			o.untouched()
			c.Delete("--force")
			c.WaitExit()
			if left, _ := filepath.Glob(b.Root + "/" + b.Tag + "*"); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			o.untouched()
			harness.Report(t, "attacks", len(tries)+2)
		})
	}
}
