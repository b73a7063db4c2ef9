package integration

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/berth-runtime/berth/test/harness"
)

// What the process says of itself to the socket that it is given comes to the one that the engine
// was given, whichever way it is started.
func TestNotifyIsPassedOn(t *testing.T) {
	for _, way := range []string{"run", "create and start", "run in a user namespace", "create and start in a user namespace"} {
		t.Run(way, func(t *testing.T) {
			b := harness.New(t)
			path := b.Path("notify")
			socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
			if err != nil {
				t.Fatal(err)
			}
			defer socket.Close()
			c := b.Container("/inside", "notify", "STATUS=almost", "READY=1")
			c.Env = append(c.Env, "NOTIFY_SOCKET="+path)
			if strings.Contains(way, "user namespace") {
				c.Spec = inUserNamespace(b, c.Spec.Process.Args...).Spec
				// Its root makes the directory that the socket is mounted in.
				if err := os.Chown(c.Rootfs(), 100000, 100000); err != nil {
					t.Fatal(err)
				}
			}
			if strings.HasPrefix(way, "run") {
				c.RunDetached()
			} else {
				c.Create()
				c.Start()
			}
			buf := make([]byte, 100)
			for _, want := range []string{"STATUS=almost\n", fmt.Sprintf("READY=1\nMAINPID=%d\n", c.State().Pid)} {
				socket.SetReadDeadline(time.Now().Add(harness.Deadline))
				n, err := socket.Read(buf)
				if err != nil || string(buf[:n]) != want {
					t.Fatalf("got %q, %v, want %q", buf[:n], err, want)
				}
			}
			c.Delete("--force")
			c.WaitExit()
		})
	}
}
